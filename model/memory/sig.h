/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Signatures of blocks and of transactions: the transform that adds, removes, replaces and checks
 * them.
 *
 * Each domain (memory, wire) has no signatures, or one behind each block of data:
 *
 *   T10-DIF     guard (CRC or IP checksum, 2 bytes), application tag (2), reference tag (4),
 *               big-endian
 *   CRC         4 or 8 bytes, least significant byte first: the order in which a reflected CRC is
 *               transmitted
 *
 * The input domain is memory when data is read from the key, and the wire when it is written. Its
 * signatures are checked, as far as check_mask says. A signature that does not match is an error of
 * the key, and the transfer goes on. The key keeps the first error until a UMR arms it again
 * (mkc.expected_sigerr_count). The signatures of the output domain are computed; if both domains
 * have the same block structure, the bytes in copy_mask are taken from the input instead.
 *
 * A domain's PSV has the seed of the guards, the application tag, and the reference tag of the
 * key's first block.
 *
 * A transaction is data that several keys may hold, one after the other, with one CRC. The first
 * key begins it. When the last byte of a key's data has passed, the CRC's state is in the PSV, from
 * where the next key takes it. The last key has the signature behind its data. SPDK's accel_mlx5
 * computes CRC32C in this way. In this file, the data of a key in a transaction is one long block.
 *
 * A long block (of a transaction, or of 1 GiB) is not read again from its beginning, because that
 * would make the work of one packet unbounded. Its data passes in order. The state of the guard is
 * kept every SIG_STRIDE bytes, so a transfer may go back to any byte that has passed.
 */
#ifndef HCASIM_MODEL_SIG_H
#define HCASIM_MODEL_SIG_H

#include "model/memory/sig_sum.h"
#include "model/memory/transform.h"

#define SIG_FIELD_MAX 8 /* the longest signature */

/* Long blocks: bytes between two states that are kept, their number, and the most data. */
#define SIG_STRIDE   (256u << 10)
#define SIG_MARKS    64
#define SIG_LONG_MAX (SIG_MARKS * SIG_STRIDE)

/* Signatures on the wire that can be incomplete at one time, because a packet ended inside. */
#define SIG_PARTS 4

/* A guard that is being computed. */
struct sig_run {
    uint64_t block; /* of this block */
    uint64_t done;  /* so many of its bytes are in state; UINT64_MAX: none, not even the seed */
    uint64_t state; /* sig_sum_add() */
};

struct sig_domain {
    uint8_t kind;        /* enum sig_kind */
    uint8_t bytes;       /* of a signature; 0: none */
    bool has_inc_ref;    /* the reference tag grows with each block */
    bool app_escapes;    /* application tag 0xffff: no check */
    bool appref_escapes; /* application tag 0xffff with reference tag 0xffffffff: no check */
    uint16_t app_mask;   /* bits of the application tag that are checked */
    uint32_t block;      /* bytes of data in a block */
    uint32_t psvn;
    struct sig_run run;
    /* long blocks: state i is that before byte i * SIG_STRIDE, if its bit is set */
    bool is_long;
    uint64_t marked;
    uint64_t marks[SIG_MARKS];
    /* transactions */
    bool is_transaction;
    bool begins;    /* with the seed, not with the PSV's value */
    uint64_t begin; /* the seed, or the value that was taken from the PSV */
    bool has_begun; /* ... when its stamp was began; it is ended when the key's data has passed */
    uint32_t began, ended;
};

/* A signature on the wire of which not all bytes have come. */
struct sig_part {
    uint64_t block;
    uint8_t have; /* a bit for each byte */
    uint8_t bytes[SIG_FIELD_MAX];
};

/* What a SIG_ERR CQE says, in host byte order. */
struct sig_error {
    uint32_t key, pdn;
    uint16_t syndrome; /* bits PRM_SIG_ERR_SYNDROME_ */
    uint8_t domain;    /* PRM_SIG_ERR_DOMAIN_ */
    uint8_t type;      /* PRM_SIG_ERR_TYPE_ */
    /* found: what the signature says. computed: from the data and the PSV. In both: guard << 48 |
     * application tag << 32 | reference tag, CRC32 << 32, or CRC64. */
    uint64_t found, computed;
    uint64_t offset; /* of the block in the key, in bytes of that domain */
};

/* The descriptor of a key. It is allocated with the key, so that no UMR allocates. */
struct sig {
    struct transform transform;
    bool is_same;       /* both domains have the same block structure */
    uint8_t check_mask; /* bit 7 is a signature's first byte */
    uint8_t copy_mask;
    uint32_t raw;   /* bytes of data; UINT32_MAX: as many as the memory holds */
    uint64_t total; /* bytes of data behind the key */
    struct sig_domain mem, wire;
    struct sig_part parts[SIG_PARTS];
    unsigned next_part;
    /* errors: the key reports one if its two counts differ */
    uint8_t expected_count, count;
    struct sig_error error;
    bool is_pending;     /* the error is not reported: the key is on the list hca->sig_pending */
    struct sig *pending; /* the next key on it */
};

extern const struct transform_ops sig_ops;

/* Bytes of a block, by enum prm_bsf_block; 0: no such block, or a long one. */
uint32_t bsf_block_bytes(unsigned selector);
/* Reads a descriptor of len bytes into *sig: the domains and masks. False: it is not valid, or a
 * PSV does not exist in the PD. */
bool bsf_parse(struct hca *hca, uint32_t pdn, const void *descriptor, size_t len, struct sig *sig);

/* Called when the key's length or descriptor has changed. memory: bytes of the memory domain. */
void sig_changed(struct sig *sig, uint64_t memory);
/* The key ends: takes it off the list of keys with errors. */
void sig_end(struct hca *hca, struct sig *sig);

/* Takes the next error of a key of the PD that is not reported. Errors of keys of other PDs are
 * dropped: nobody who knows those keys asks. False: there is none. */
bool sig_take_error(struct hca *hca, uint32_t pdn, struct sig_error *error);

#endif
