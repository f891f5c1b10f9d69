/* SPDX-License-Identifier: BSD-2-Clause */
/* The capabilities of the crypto engine (model/memory/dek.h). */
#include "fw/caps.h"
#include "model/memory/dek.h"
#include "model/memory/kek.h"

#define IMPORT_AES_XTS (1u << 2)

uint64_t caps_has_crypto(const struct fw *fw)
{
    return crypto_is_there(&fw->hca);
}

uint64_t caps_is_wrapped(const struct fw *fw)
{
    return crypto_is_there(&fw->hca) && fw->hca.limits.crypto == HCA_CRYPTO_WRAPPED;
}

static uint64_t caps_wrapped_methods(const struct fw *fw)
{
    return caps_is_wrapped(fw) ? IMPORT_AES_XTS : 0;
}

static uint64_t caps_log_keks(const struct fw *fw)
{
    return caps_is_wrapped(fw) ? KEK_LOG_MAX : 0;
}

static uint64_t caps_log_credentials(const struct fw *fw)
{
    return caps_is_wrapped(fw) ? KEK_LOG_MAX_CREDENTIALS : 0;
}

#define CRYPTO(name, ...)                                                                          \
    {                                                                                              \
        CAP_NAMED(crypto_cap, name), __VA_ARGS__                                                   \
    }

/* The self tests of the engine cannot fail. */
const struct cap caps_crypto[] = {
    CRYPTO(wrapped_crypto_operational, .of = caps_is_wrapped),
    CRYPTO(wrapped_import_method, .of = caps_wrapped_methods, .is_set = true),
    CRYPTO(log_max_num_deks, .value = DEK_LOG_MAX),
    CRYPTO(log_max_num_import_keks, .of = caps_log_keks),
    CRYPTO(log_max_num_creds, .of = caps_log_credentials),
    CRYPTO(num_nv_import_keks, .of = caps_is_wrapped),
    CRYPTO(num_nv_credentials, .of = caps_is_wrapped),
    {0},
};
