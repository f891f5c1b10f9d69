/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reports the firmware's health in the initialization segment, where a driver polls it: a counter
 * that moves while the firmware runs, a syndrome, and whether the firmware asks for a reset (rfr).
 *
 * The firmware never fails by itself; an owner makes it fail by fw_set_health(). A driver that sees
 * a syndrome with rfr cancels its commands and resets the firmware by writing "SW reset" to the NIC
 * interface field (driver: mlx5_error_sw_reset(), reset_fw_if_needed()). Without rfr it reports the
 * syndrome.
 */
#include "fw/fw_internal.h"

/* The counter moves every 10 ms; the driver looks every few seconds. */
#define TICK_NS 10000000

void fw_set_health(struct fw *fw, uint8_t syndrome, bool fatal)
{
    fw->health = (struct fw_health){
        .syndrome = syndrome, .fatal = syndrome && fatal, .since = hca_now(&fw->hca)};
    hca_log(&fw->hca, HCA_LOG_INFO, "health syndrome 0x%x%s", syndrome,
            fw->health.fatal ? ", fatal" : "");
    cmdq_doorbell(fw, 0); /* takes commands that waited while the firmware had stopped */
}

uint32_t fw_hw_id(const struct fw *fw)
{
    return fw->profile->hw_id;
}

uint8_t fw_get_health(const struct fw *fw, bool *fatal)
{
    *fatal = fw->health.fatal;
    return fw->health.syndrome;
}

void health_reset(struct fw *fw)
{
    fw->health = (struct fw_health){0};
}

bool health_is_fatal(const struct fw *fw)
{
    return fw->health.fatal;
}

void health_fill(struct fw *fw, struct prm_health_buffer *image)
{
    const struct fw_profile *p = fw->profile;
    const struct fw_health *h = &fw->health;

    PRM_SET(health_buffer, image, fw_version,
            (uint32_t)p->fw_major << 24 | (uint32_t)(p->fw_minor & 0xff) << 16 | p->fw_subminor);
    PRM_SET(health_buffer, image, hw_id, p->hw_id);
    if (!h->syndrome) {
        return;
    }
    PRM_SET(health_buffer, image, time, (uint32_t)(h->since / 1000000000));
    PRM_SET(health_buffer, image, rfr, h->fatal);
    PRM_SET(health_buffer, image, valid, 1);
    PRM_SET(health_buffer, image, severity,
            h->fatal ? PRM_HEALTH_SEVERITY_CRITICAL : PRM_HEALTH_SEVERITY_ERROR);
    PRM_SET(health_buffer, image, synd, h->syndrome);
}

uint32_t health_counter(struct fw *fw)
{
    uint64_t now = fw->health.fatal ? fw->health.since : hca_now(&fw->hca);

    return (uint32_t)(now / TICK_NS) & 0xffffff;
}
