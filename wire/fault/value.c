/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the values of fault rules: numbers, times, rates, addresses, names. */
#include "wire/fault/rule.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#define ADDRESS_TEXT 46 /* the longest IPv6 address, and its end */

struct fault_unit {
    const char *name;
    double of;
};

static const struct fault_unit times[] = {
    {"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {NULL, 0}};
static const struct fault_unit rates[] = {
    {"bit", 1}, {"kbit", 1e3}, {"Mbit", 1e6}, {"Gbit", 1e9}, {NULL, 0}};
static const struct fault_unit sizes[] = {{"", 1}, {"K", 1024}, {"M", 1048576}, {NULL, 0}};
static const struct fault_unit percents[] = {{"%", CHANCE_MILLION / 100.0}, {NULL, 0}};

/* Decimal digits, or hexadecimal ones behind 0x. */
static bool fault_value_number(const char *text, size_t len, uint64_t least, uint64_t most,
                               uint64_t *number)
{
    uint64_t base = 10, sum = 0;

    if (len > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
        base = 16;
        text += 2;
        len -= 2;
    }
    for (size_t i = 0; i < len; i++) {
        int digit = g_ascii_xdigit_value(text[i]);

        if (digit < 0 || (uint64_t)digit >= base || __builtin_mul_overflow(sum, base, &sum) ||
            __builtin_add_overflow(sum, (uint64_t)digit, &sum)) {
            return false;
        }
    }
    *number = sum;
    return len && sum >= least && sum <= most;
}

/* Digits, perhaps with a point, and a unit. */
static bool fault_value_with_unit(const struct fault_unit *units, const char *text, uint64_t least,
                                  uint64_t most, uint64_t *number)
{
    size_t digits = strspn(text, "0123456789.");
    double value = digits && g_ascii_isdigit(*text) ? g_ascii_strtod(text, NULL) : -1;

    for (; units->name && value >= 0; units++) {
        if (!strcmp(text + digits, units->name)) {
            double scaled = value * units->of;

            if (memchr(text, '.', digits) != memrchr(text, '.', digits) || scaled >= 9.2e18 ||
                scaled < (double)least || scaled > (double)most) {
                return false;
            }
            *number = (uint64_t)(scaled + 0.5);
            return true;
        }
    }
    return false;
}

static bool fault_value_range(const char *text, uint64_t most, uint64_t *range)
{
    const char *dots = strstr(text, "..");

    if (!dots) {
        return fault_value_number(text, strlen(text), 0, most, &range[0]) &&
               ((range[1] = range[0]), true);
    }
    return fault_value_number(text, (size_t)(dots - text), 0, most, &range[0]) &&
           fault_value_number(dots + 2, strlen(dots + 2), 0, most, &range[1]);
}

static bool fault_value_address(const char *text, struct fault_address *address)
{
    uint8_t *b = address->bytes;
    char end;

    if (strlen(text) >= ADDRESS_TEXT) {
        return false;
    }
    memset(address, 0, sizeof(*address));
    if (strspn(text, "0123456789abcdefABCDEF:") == strlen(text) &&
        sscanf(text, "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx%c", &b[0], &b[1], &b[2], &b[3], &b[4],
               &b[5], &end) == 6) {
        address->is_mac = true;
        return true;
    }
    memset(b, 0, sizeof(address->bytes));
    b[10] = b[11] = 0xff;
    if (inet_pton(AF_INET, text, b + 12) == 1) {
        return true;
    }
    return inet_pton(AF_INET6, text, b) == 1;
}

static bool fault_value_command(const char *text, const struct fault_names *names, uint64_t *to)
{
    uint16_t opcode;

    if (!strcmp(text, "any")) {
        *to = FAULT_ANY_COMMAND;
        return true;
    }
    if (!names || !names->command(text, &opcode)) {
        return false;
    }
    *to = opcode;
    return true;
}

static bool fault_value_status(const char *text, const struct fault_names *names, uint64_t *to)
{
    uint8_t status;

    if (!names || !names->status(text, &status)) {
        return false;
    }
    *to = status;
    return true;
}

static bool fault_value_span(const char *text, uint64_t least, uint64_t most,
                             struct fault_span *span)
{
    *span = (struct fault_span){0};
    return fault_value_number(text, strlen(text), least, UINT64_MAX, &span->count) ||
           (!(span->count = 0) && fault_value_with_unit(times, text, least, most, &span->ns));
}

bool fault_value_read(enum fault_value kind, const char *text, uint64_t least, uint64_t most,
                      const struct fault_names *names, void *to)
{
    switch (kind) {
    case FAULT_VALUE_NONE:
        return true;
    case FAULT_VALUE_NUMBER:
        return fault_value_number(text, strlen(text), least, most, to);
    case FAULT_VALUE_RANGE:
        return fault_value_range(text, most, to);
    case FAULT_VALUE_TIME:
        return fault_value_with_unit(times, text, least, most, to);
    case FAULT_VALUE_COUNT_OR_TIME:
        return fault_value_span(text, least, most, to);
    case FAULT_VALUE_PERCENT:
        return fault_value_with_unit(percents, text, least, most, to);
    case FAULT_VALUE_SIZE:
        return fault_value_with_unit(sizes, text, least, most, to);
    case FAULT_VALUE_RATE:
        return fault_value_with_unit(rates, text, least, most, to);
    case FAULT_VALUE_ADDRESS:
        return fault_value_address(text, to);
    case FAULT_VALUE_COMMAND:
        return fault_value_command(text, names, to);
    case FAULT_VALUE_STATUS:
        return fault_value_status(text, names, to);
    }
    return false;
}

char *fault_value_help(enum fault_value kind, uint64_t least, uint64_t most)
{
    switch (kind) {
    case FAULT_VALUE_NUMBER:
        return most == UINT64_MAX
                   ? g_strdup_printf("a number from %" G_GUINT64_FORMAT " on", least)
                   : g_strdup_printf("a number from %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT
                                     ", or hexadecimal behind 0x",
                                     least, most);
    case FAULT_VALUE_RANGE:
        return g_strdup("a number such as 100, or a range such as 100..110");
    case FAULT_VALUE_TIME:
        return g_strdup_printf("a time of at most %gs, such as 100us, 5ms or 0.5s",
                               (double)most / 1e9);
    case FAULT_VALUE_COUNT_OR_TIME:
        return g_strdup("a number such as 1000, or a time such as 2s");
    case FAULT_VALUE_PERCENT:
        return g_strdup("0% to 100%, such as 0.5%");
    case FAULT_VALUE_SIZE:
        return g_strdup("a number of bytes, such as 9000, 64K or 1M");
    case FAULT_VALUE_RATE:
        return g_strdup("a rate such as 64kbit, 100Mbit or 1Gbit");
    case FAULT_VALUE_ADDRESS:
        return g_strdup("a MAC, IPv4 or IPv6 address");
    case FAULT_VALUE_COMMAND:
        return g_strdup("the name of a command, such as CREATE_CQ, or any");
    case FAULT_VALUE_STATUS:
        return g_strdup("a command's status, such as BAD_RES or NO_RES");
    case FAULT_VALUE_NONE:
        break;
    }
    return g_strdup("nothing");
}
