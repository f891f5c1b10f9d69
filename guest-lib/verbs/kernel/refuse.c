/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines of the log that explain refused verbs; see refuse.h. */
#include "guest-lib/verbs/kernel/refuse.h"
#include <arpa/inet.h>
#include <stdarg.h>
#include <string.h>
#include "guest-lib/verbs/kernel/hca.h"

#define REFUSE_BURST   100
#define REFUSE_LINE_NS 1000000000ull

/* -- the bound ----------------------------------------------------------------------------------
 */

void hv_said_init(struct hv_said *said)
{
    *said = (struct hv_said){0};
    pthread_mutex_init(&said->lock, NULL);
}

void hv_said_fini(struct hv_said *said)
{
    pthread_mutex_destroy(&said->lock);
}

void hv_said_lock(struct hv_hca *hca)
{
    pthread_mutex_lock(&hca->said.lock);
}

void hv_said_unlock(struct hv_hca *hca)
{
    pthread_mutex_unlock(&hca->said.lock);
}

/* Takes a line's place. False: there is none. *left_out: lines that had none before it. */
static bool refuse_take(struct hv_said *said, uint64_t *left_out)
{
    uint64_t now = (uint64_t)g_get_monotonic_time() * 1000;
    uint64_t out;
    bool has;

    pthread_mutex_lock(&said->lock);
    out = (now - said->since_ns) / REFUSE_LINE_NS;
    if (out >= said->lines) {
        said->lines = 0;
        said->since_ns = now;
    } else {
        said->lines -= (unsigned)out;
        said->since_ns += out * REFUSE_LINE_NS;
    }
    has = said->lines < REFUSE_BURST;
    said->lines += has;
    said->left_out += !has;
    *left_out = said->left_out;
    if (has) {
        said->left_out = 0;
    }
    pthread_mutex_unlock(&said->lock);
    return has;
}

/* -- lines --------------------------------------------------------------------------------------
 */

bool hv_says(struct hv_hca *hca)
{
    return hca &&
           local_logs(hca->local, HCA_LOG_GUEST_ERROR); /* NULL: a context without a device */
}

/* As in errno.h, for those that verbs return; of others the description. */
static const char *refuse_errno_name(int err)
{
    static const struct {
        int err;
        const char *name;
    } names[] = {
#define E(name) {name, #name}
        E(EPERM),   E(ENOENT),    E(EIO),          E(EBADF),      E(EAGAIN), E(ENOMEM), E(EACCES),
        E(EFAULT),  E(EBUSY),     E(EEXIST),       E(ENODEV),     E(EINVAL), E(ENOSPC), E(ENOSYS),
        E(ENODATA), E(ETIMEDOUT), E(EHOSTUNREACH), E(EOPNOTSUPP), E(ERANGE),
#undef E
    };

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        if (names[i].err == err) {
            return names[i].name;
        }
    }
    return g_strerror(err);
}

bool hv_explains(struct hv_hca *hca)
{
    return hca->explains;
}

static void refuse_write(struct hv_hca *hca, int err, const char *fmt, va_list ap)
{
    uint64_t left_out = 0;
    char line[1024];
    size_t len;

    if (!local_logs(hca->local, HCA_LOG_TRACE) && !refuse_take(&hca->said, &left_out)) {
        return;
    }
    if (left_out) {
        g_snprintf(line, sizeof(line), "%" G_GUINT64_FORMAT " lines about verbs were left out",
                   left_out);
        local_log(hca->local, HCA_LOG_GUEST_ERROR, line);
    }
    g_vsnprintf(line, sizeof(line), fmt, ap);
    len = strlen(line);
    if (err) {
        g_snprintf(line + len, sizeof(line) - len, " (%s)", refuse_errno_name(err));
    }
    local_log(hca->local, HCA_LOG_GUEST_ERROR, line);
}

int hv_refuse(struct hv_hca *hca, int err, const char *fmt, ...)
{
    va_list ap;

    if (err && hv_says(hca)) {
        int saved = errno;

        va_start(ap, fmt);
        refuse_write(hca, err, fmt, ap);
        va_end(ap);
        errno = saved;
    }
    return err;
}

void hv_say(struct hv_hca *hca, const char *fmt, ...)
{
    va_list ap;

    if (hv_says(hca)) {
        int saved = errno;

        va_start(ap, fmt);
        refuse_write(hca, 0, fmt, ap);
        va_end(ap);
        errno = saved;
    }
}

/* -- words --------------------------------------------------------------------------------------
 */

const char *hv_qp_mask_names(int mask, struct hv_words *words)
{
    static const char *const names[] = {
        "STATE",
        "CUR_STATE",
        "EN_SQD_ASYNC_NOTIFY",
        "ACCESS_FLAGS",
        "PKEY_INDEX",
        "PORT",
        "QKEY",
        "AV",
        "PATH_MTU",
        "TIMEOUT",
        "RETRY_CNT",
        "RNR_RETRY",
        "RQ_PSN",
        "MAX_QP_RD_ATOMIC",
        "ALT_PATH",
        "MIN_RNR_TIMER",
        "SQ_PSN",
        "MAX_DEST_RD_ATOMIC",
        "PATH_MIG_STATE",
        "CAP",
        "DEST_QPN",
    };
    size_t len = 0;

    G_STATIC_ASSERT(IBV_QP_DEST_QPN == 1 << (G_N_ELEMENTS(names) - 1));
    words->text[0] = 0;
    for (unsigned bit = 0; bit < 32; bit++) {
        if (!((unsigned)mask >> bit & 1)) {
            continue;
        }
        if (1u << bit == IBV_QP_RATE_LIMIT) {
            g_snprintf(words->text + len, sizeof(words->text) - len, "%sIBV_QP_RATE_LIMIT",
                       len ? ", " : "");
        } else if (bit < G_N_ELEMENTS(names)) {
            g_snprintf(words->text + len, sizeof(words->text) - len, "%sIBV_QP_%s", len ? ", " : "",
                       names[bit]);
        } else {
            g_snprintf(words->text + len, sizeof(words->text) - len, "%s0x%x", len ? ", " : "",
                       1u << bit);
        }
        len = strlen(words->text);
    }
    return words->text;
}

const char *hv_qp_state_name(enum ibv_qp_state state)
{
    static const char *const names[] = {
        [IBV_QPS_RESET] = "RESET", [IBV_QPS_INIT] = "INIT", [IBV_QPS_RTR] = "RTR",
        [IBV_QPS_RTS] = "RTS",     [IBV_QPS_SQD] = "SQD",   [IBV_QPS_SQE] = "SQE",
        [IBV_QPS_ERR] = "ERR",
    };

    return (unsigned)state < G_N_ELEMENTS(names) ? names[state] : "an unknown state";
}

const char *hv_qp_type_name(enum ibv_qp_type type)
{
    switch (type) {
    case IBV_QPT_RC:
        return "RC";
    case IBV_QPT_UC:
        return "UC";
    case IBV_QPT_UD:
        return "UD";
    case IBV_QPT_RAW_PACKET:
        return "RAW_PACKET";
    case IBV_QPT_XRC_SEND:
        return "XRC_SEND";
    case IBV_QPT_XRC_RECV:
        return "XRC_RECV";
    case IBV_QPT_DRIVER:
        return "DRIVER";
    default:
        return "an unknown type";
    }
}

const char *hv_gid_name(const union ibv_gid *gid, struct hv_words *words)
{
    bool ipv4 = hv_gid_is_ipv4(gid);

    if (!inet_ntop(ipv4 ? AF_INET : AF_INET6, ipv4 ? gid->raw + 12 : gid->raw, words->text,
                   sizeof(words->text))) {
        words->text[0] = 0;
    }
    return words->text;
}
