/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of command failures (model/core/syndromes.def) as data. */
#include "model/core/syndrome.h"
#include "prm/prm.h"

static const struct {
    uint8_t status;
    uint32_t code;
    const char *text;
} syndromes[SYN_COUNT] = {
    [SYN_OK] = {PRM_CMD_STATUS_OK, 0, "ok"},
#define SYN(name, status, code, text) [SYN_##name] = {PRM_CMD_STATUS_##status, code, text},
#include "model/core/syndromes.def"
#undef SYN
};

uint8_t syn_status(enum syn syn)
{
    return syndromes[syn].status;
}

uint32_t syn_code(enum syn syn)
{
    return syndromes[syn].code;
}

const char *syn_text(enum syn syn)
{
    return syndromes[syn].text;
}
