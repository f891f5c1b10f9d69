/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the ELF header, the name of the loader (PT_INTERP), and where segments and sections end. */
#include "cli/loader.h"
#include <elf.h>
#include <fcntl.h>
#include <glib.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOADER_MAX 256

struct loader_facts {
    bool is_elf;
    unsigned machine, word; /* word: 32 or 64 bits */
    char name[LOADER_MAX];
};

static bool loader_pread(int fd, void *to, size_t len, uint64_t at)
{
    return pread(fd, to, len, (off_t)at) == (ssize_t)len;
}

static void loader_read_name(int fd, const ElfW(Ehdr) * header, struct loader_facts *facts)
{
    for (unsigned i = 0; i < header->e_phnum; i++) {
        ElfW(Phdr) segment;

        if (!loader_pread(fd, &segment, sizeof(segment), header->e_phoff + i * sizeof(segment))) {
            return;
        }
        if (segment.p_type == PT_INTERP && segment.p_filesz < LOADER_MAX) {
            if (!loader_pread(fd, facts->name, segment.p_filesz, segment.p_offset)) {
                facts->name[0] = 0;
            }
            return;
        }
    }
}

static struct loader_facts loader_read(const char *path)
{
    struct loader_facts facts = {0};
    ElfW(Ehdr) header;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0) {
        return facts;
    }
    if (loader_pread(fd, &header, sizeof(header), 0) && !memcmp(header.e_ident, ELFMAG, SELFMAG)) {
        facts.is_elf = true;
        facts.machine = header.e_machine;
        facts.word = header.e_ident[EI_CLASS];
        if (header.e_phentsize == sizeof(ElfW(Phdr))) {
            loader_read_name(fd, &header, &facts);
        }
    }
    close(fd);
    return facts;
}

bool loader_is_foreign(const char *path)
{
    struct loader_facts theirs = loader_read(path), ours;
    g_autofree char *their_loader = NULL, *our_loader = NULL;

    if (!theirs.is_elf) {
        return false;
    }
    ours = loader_read("/proc/self/exe");
    their_loader = g_path_get_basename(theirs.name);
    our_loader = g_path_get_basename(ours.name);
    return theirs.machine != ours.machine || theirs.word != ours.word || !*theirs.name ||
           strcmp(their_loader, our_loader) != 0;
}

bool loader_is_of_our_kind(const char *path)
{
    struct loader_facts theirs = loader_read(path), ours;

    if (!theirs.is_elf) {
        return false;
    }
    ours = loader_read("/proc/self/exe");
    return theirs.machine == ours.machine && theirs.word == ours.word;
}

static bool loader_has_segments(int fd, const ElfW(Ehdr) * header, uint64_t size)
{
    for (unsigned i = 0; i < header->e_phnum; i++) {
        ElfW(Phdr) segment;

        if (!loader_pread(fd, &segment, sizeof(segment), header->e_phoff + i * sizeof(segment)) ||
            segment.p_filesz > size || segment.p_offset > size - segment.p_filesz) {
            return false;
        }
    }
    return header->e_phnum > 0;
}

bool loader_is_whole(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ElfW(Ehdr) header;
    struct stat st;
    bool is_whole;

    if (fd < 0) {
        return false;
    }
    is_whole =
        !fstat(fd, &st) && loader_pread(fd, &header, sizeof(header), 0) &&
        !memcmp(header.e_ident, ELFMAG, SELFMAG) && header.e_phentsize == sizeof(ElfW(Phdr)) &&
        loader_has_segments(fd, &header, (uint64_t)st.st_size) &&
        header.e_shoff <= (uint64_t)st.st_size &&
        (uint64_t)header.e_shnum * header.e_shentsize <= (uint64_t)st.st_size - header.e_shoff;
    close(fd);
    return is_whole;
}
