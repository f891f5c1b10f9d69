/* SPDX-License-Identifier: BSD-2-Clause */
/* Loads libcrypto and calls it. */
#include <dlfcn.h>
#include <glib.h>
#include <string.h>
#include "model/memory/aes.h"

/* The part of OpenSSL's interface that is used here, the same in 1.1 and 3. */
typedef struct evp_cipher_ctx EVP_CIPHER_CTX;
typedef struct evp_cipher EVP_CIPHER;

#define CIPHER_CTX_FLAG_WRAP_ALLOW 1

static const char *const aes_libraries[] = {"libcrypto.so.3", "libcrypto.so.1.1"};

static struct {
    void *library;
    EVP_CIPHER_CTX *(*new)(void);
    void (*free)(EVP_CIPHER_CTX *ctx);
    void (*set_flags)(EVP_CIPHER_CTX *ctx, int flags);
    int (*init)(EVP_CIPHER_CTX *ctx, const EVP_CIPHER *cipher, void *engine, const uint8_t *key,
                const uint8_t *iv, int encrypt);
    int (*update)(EVP_CIPHER_CTX *ctx, uint8_t *out, int *out_len, const uint8_t *in, int in_len);
    const EVP_CIPHER *(*xts_128)(void), *(*xts_256)(void), *(*wrap_128)(void), *(*wrap_256)(void);
} crypto;

static const struct {
    const char *name;
    void *function;
} aes_symbols[] = {
    {"EVP_CIPHER_CTX_new", &crypto.new},
    {"EVP_CIPHER_CTX_free", &crypto.free},
    {"EVP_CIPHER_CTX_set_flags", &crypto.set_flags},
    {"EVP_CipherInit_ex", &crypto.init},
    {"EVP_CipherUpdate", &crypto.update},
    {"EVP_aes_128_xts", &crypto.xts_128},
    {"EVP_aes_256_xts", &crypto.xts_256},
    {"EVP_aes_128_wrap", &crypto.wrap_128},
    {"EVP_aes_256_wrap", &crypto.wrap_256},
};

static void *aes_open(void)
{
    void *library = NULL;

    for (size_t i = 0; i < G_N_ELEMENTS(aes_libraries) && !library; i++) {
        library = dlopen(aes_libraries[i], RTLD_LAZY | RTLD_LOCAL);
    }
    return library;
}

bool aes_is_there(void)
{
    static gsize answer; /* 0: not known yet; 1: no; 2: yes */

    if (g_once_init_enter(&answer)) {
        void *library = aes_open();

        if (library) {
            dlclose(library);
        }
        g_once_init_leave(&answer, library ? 2 : 1);
    }
    return answer == 2;
}

/* Loads the library, for good. */
static bool aes_load(void)
{
    static gsize done; /* 1: it is not usable; 2: loaded */

    if (g_once_init_enter(&done)) {
        void *library = aes_open();
        bool ok = library;

        for (size_t i = 0; ok && i < G_N_ELEMENTS(aes_symbols); i++) {
            void *found = dlsym(library, aes_symbols[i].name);

            memcpy(aes_symbols[i].function, &found, sizeof(found));
            ok = found;
        }
        g_once_init_leave(&done, ok ? 2 : 1);
    }
    return done == 2;
}

struct aes_xts {
    EVP_CIPHER_CTX *encrypt, *decrypt;
};

static EVP_CIPHER_CTX *aes_xts_context(const uint8_t *key, size_t len, int encrypt)
{
    EVP_CIPHER_CTX *ctx = crypto.new();
    const EVP_CIPHER *cipher = len == 32 ? crypto.xts_128() : crypto.xts_256();

    if (ctx && !crypto.init(ctx, cipher, NULL, key, NULL, encrypt)) {
        crypto.free(ctx);
        return NULL;
    }
    return ctx;
}

struct aes_xts *aes_xts_new(const uint8_t *key, size_t len)
{
    struct aes_xts *xts;

    if (!aes_load() || !memcmp(key, key + len / 2, len / 2)) {
        return NULL;
    }
    xts = g_new0(struct aes_xts, 1);
    xts->encrypt = aes_xts_context(key, len, 1);
    xts->decrypt = aes_xts_context(key, len, 0);
    if (!xts->encrypt || !xts->decrypt) {
        g_clear_pointer(&xts, aes_xts_free);
    }
    return xts;
}

void aes_xts_free(struct aes_xts *xts)
{
    if (xts) {
        crypto.free(xts->encrypt); /* NULL is allowed */
        crypto.free(xts->decrypt);
        g_free(xts);
    }
}

bool aes_xts_run(struct aes_xts *xts, bool encrypt, const uint8_t tweak[AES_BLOCK],
                 const uint8_t *in, uint8_t *out, size_t len)
{
    EVP_CIPHER_CTX *ctx = encrypt ? xts->encrypt : xts->decrypt;
    int made = 0;

    return crypto.init(ctx, NULL, NULL, NULL, tweak, encrypt) &&
           crypto.update(ctx, out, &made, in, (int)len) && made == (int)len;
}

bool aes_unwrap(const uint8_t *kek, size_t kek_len, const uint8_t *wrapped, size_t len,
                uint8_t *key)
{
    EVP_CIPHER_CTX *ctx;
    int made = 0;
    bool ok;

    if (!aes_load()) {
        return false;
    }
    ctx = crypto.new();
    if (!ctx) {
        return false;
    }
    crypto.set_flags(ctx, CIPHER_CTX_FLAG_WRAP_ALLOW);
    ok = crypto.init(ctx, kek_len == 16 ? crypto.wrap_128() : crypto.wrap_256(), NULL, kek, NULL,
                     0) &&
         crypto.update(ctx, key, &made, wrapped, (int)len) && made == (int)len - 8;
    crypto.free(ctx);
    return ok;
}
