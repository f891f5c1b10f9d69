/* SPDX-License-Identifier: BSD-2-Clause */
/* Capabilities of atomics, RoCE, device memory, vector calculations, and the events that a user
 * context may subscribe to. */
#include "fw/caps.h"
#include "model/core/obj_class.h"
#include "model/memory/masked.h"
#include "model/memory/memic.h"
#include "model/memory/sw_icm.h"
#include "model/rdma/vec_calc.h"
#include "wire/encap/roce.h"

/* Sizes in bytes, a bit for each size with the value of the size: MASKED_MIN to MASKED_MAX. */
#define ATOMIC_SIZES (2 * MASKED_MAX - MASKED_MIN)

#define ATOMIC(name, n, ...)                                                                       \
    {                                                                                              \
        CAP_NAMED(atomic_caps, name), .value = (n), ##__VA_ARGS__                                  \
    }

/* Those of the sizes whose atomics are atomic to the host's CPUs, too. */
#define PCI_ATOMIC(name)                                                                           \
    {                                                                                              \
        CAP_NAMED(atomic_caps, name), CAP_LIMIT(pci_atomics)                                       \
    }

const struct cap caps_atomic[] = {
    /* byte order of the result of an 8-byte atomic; a driver may request the host's order */
    ATOMIC(atomic_req_8B_endianness_mode, PRM_ATOMIC_REQ_MODE_HOST_ENDIANNESS, CAP_SET(atomic_mode),
           .values =
               1u << PRM_ATOMIC_REQ_MODE_BIG_ENDIAN | 1u << PRM_ATOMIC_REQ_MODE_HOST_ENDIANNESS),
    ATOMIC(supported_atomic_req_8B_endianness_mode_1, 1),
    ATOMIC(atomic_operations, 1u << PRM_ATOMIC_OPERATION_CMP_SWAP |
                                  1u << PRM_ATOMIC_OPERATION_FETCH_ADD |
                                  1u << PRM_ATOMIC_OPERATION_EXTENDED_CMP_SWAP |
                                  1u << PRM_ATOMIC_OPERATION_EXTENDED_FETCH_ADD),
    ATOMIC(atomic_size_qp, ATOMIC_SIZES),
    ATOMIC(atomic_size_dc, ATOMIC_SIZES),
    PCI_ATOMIC(fetch_add_pci_atomic),
    PCI_ATOMIC(swap_pci_atomic),
    PCI_ATOMIC(compare_swap_pci_atomic),
    {0},
};

#define ROCE(name, n)                                                                              \
    {                                                                                              \
        CAP_NAMED(roce_cap, name), .value = (n)                                                    \
    }

const struct cap caps_roce[] = {
    ROCE(fl_rc_qp_when_roce_enabled, 1),
    ROCE(qp_ts_format, PRM_CAP_TS_FORMAT_FREE_RUNNING_AND_REAL_TIME),
    ROCE(l3_type, 1u << PRM_ROCE_L3_TYPE_CAP_IPV4 | 1u << PRM_ROCE_L3_TYPE_CAP_IPV6),
    ROCE(roce_version, ROCE_VERSIONS),
    ROCE(r_roce_dest_udp_port, ROCE_UDP_DPORT),
    ROCE(r_roce_min_src_udp_port, 0xc000),
    ROCE(r_roce_max_src_udp_port, 0xffff),
    {CAP_NAMED(roce_cap, roce_address_table_size), CAP_LIMIT(max_gid)},
    {0},
};

static uint64_t caps_affiliated_events(const struct fw *fw)
{
    uint64_t events = 0;

    for (unsigned kind = 0; kind < OBJ_KINDS; kind++) {
        events |= obj_classes[kind].events;
    }
    return events;
}

/* The element for event types below 64, of the array for 256 types. There are no other types. */
#define EVENTS(member) .field = PRM_device_event_cap_##member##_ARRAY, .name = #member

const struct cap caps_event[] = {
    {EVENTS(user_affiliated_events), .of = caps_affiliated_events},
    {EVENTS(user_unaffiliated_events), .value = 1ull << PRM_EVENT_TYPE_PORT_CHANGE},
    {0},
};

/* The flag of this section, device_memory, names the commands. */
#define MEMIC(name, n, ...)                                                                        \
    {                                                                                              \
        CAP_NAMED(device_mem_cap, name), .value = (n), ##__VA_ARGS__                               \
    }

const struct cap caps_device_memory[] = {
    MEMIC(memic, 1),
    MEMIC(increment_size_sup, MEMIC_OP_SIZES, .is_set = true),
    MEMIC(test_and_set_size_sup, MEMIC_OP_SIZES, .is_set = true),
    MEMIC(log_min_memic_alloc_size, MEMIC_LOG_UNIT),
    MEMIC(log_max_memic_addr_alignment, MEMIC_LOG_ALIGN),
    MEMIC(memic_bar_start_addr, MEMIC_BAR_START),
    MEMIC(memic_bar_size, MEMIC_BAR_SIZE),
    MEMIC(max_memic_size, MEMIC_MAX_SIZE),
    MEMIC(memic_operations,
          1u << PRM_MEMIC_OPERATION_INCREMENT | 1u << PRM_MEMIC_OPERATION_TEST_AND_SET,
          .is_set = true),
    MEMIC(steering_sw_icm_start_address, SW_ICM_STE_START),
    MEMIC(log_steering_sw_icm_size, SW_ICM_LOG_STE_SIZE),
    MEMIC(header_modify_sw_icm_start_address, SW_ICM_MODIFY_START),
    MEMIC(log_header_modify_sw_icm_size, SW_ICM_LOG_MODIFY_SIZE),
    MEMIC(log_sw_icm_alloc_granularity, SW_ICM_LOG_BLOCK),
    {0},
};

#define CALC(name, n)                                                                              \
    {                                                                                              \
        CAP_NAMED(vector_calc_cap, name), .value = (n)                                             \
    }

/* Exclusive or, of one of the four results. */
#define CALC_XOR(result)                                                                           \
    {                                                                                              \
        .field = PRM_calc_op_op_xor_FIELD + ((uint32_t)PRM_OFFSET(vector_calc_cap, result) << 11), \
        .name = #result, .value = 1                                                                \
    }

const struct cap caps_vector_calc[] = {
    CALC(calc_matrix, 1),
    CALC(calc_matrix_type_8bit, 1),
    CALC(max_vec_count, VEC_CALC_MAX_VECTORS),
    CALC(max_chunk_size, VEC_CALC_LOG_MAX_CHUNK),
    CALC_XOR(calc0),
    CALC_XOR(calc1),
    CALC_XOR(calc2),
    CALC_XOR(calc3),
    {0},
};
