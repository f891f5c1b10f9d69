// SPDX-License-Identifier: BSD-2-Clause
// Runs a program's cases in a child process, each under a time limit: a case that hangs or crashes
// is reported, and the next one runs. The parent never uses CUDA or verbs. The child is the same
// program with "--from INDEX"; it tells the parent over a pipe where it is.
#pragma once

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

static const int CASES_PIPE = 9; // the child's end of the pipe

struct test_case {
    std::string name;
    double limit_s;
    void (*run)(const test_case &);
    int arg;       // for the case: what the program's table means by it
    bool ends_all; // afterwards the process is of no use to another case: its CUDA context has
                   // failed
};

static inline double cases_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static inline double cases_median(std::vector<double> v)
{
    if (v.empty())
        return 0;
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
}

// One message to the parent: a letter and a line. B: a case begins; L: a line to print; F: the case
// failed; K: the case passed; E: there are no more.
static inline void cases_tell(char what, const std::string &text)
{
    std::string line(1, what);
    for (char c : text)
        line += c == '\n' ? ' ' : c;
    line += '\n';
    size_t done = 0;
    while (done < line.size()) {
        ssize_t n = write(CASES_PIPE, line.data() + done, line.size() - done);
        if (n <= 0)
            _exit(3);
        done += (size_t)n;
    }
}

static inline std::string cases_format(const char *format, va_list list)
{
    char text[2048];
    vsnprintf(text, sizeof(text), format, list);
    return text;
}

static std::string cases_remark; // what the line of a case that passes shows behind its name

__attribute__((format(printf, 1, 2))) static inline void say(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    cases_tell('L', cases_format(format, list));
    va_end(list);
}

__attribute__((format(printf, 1, 2))) static inline void remark(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    cases_remark += (cases_remark.empty() ? "" : "; ") + cases_format(format, list);
    va_end(list);
}

// The case failed. A failure ends the process, because what the case made stays behind; the parent
// starts another one for the next case.
[[noreturn]] __attribute__((format(printf, 1, 2))) static inline void fail(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    cases_tell('F', cases_format(format, list));
    va_end(list);
    _exit(1);
}

[[noreturn]] __attribute__((format(printf, 1, 2))) static inline void skip(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    cases_tell('S', cases_format(format, list));
    va_end(list);
    _exit(1);
}

static inline int cases_child(const std::vector<test_case> &cases, size_t from)
{
    for (size_t i = from; i < cases.size(); i++) {
        cases_remark.clear();
        cases_tell('B', std::to_string(i));
        cases[i].run(cases[i]);
        cases_tell('K', cases_remark);
        if (cases[i].ends_all)
            exit(0); // not _exit(): the libraries' own clean-up is part of the test
    }
    cases_tell('E', "");
    exit(0);
}

struct cases_watch {
    pid_t pid;
    int fd;
    std::string buffer;
};

static inline cases_watch cases_start(size_t from, int argc, char **argv)
{
    int ends[2];
    if (pipe(ends)) {
        perror("pipe");
        exit(2);
    }
    fflush(stdout);
    pid_t pid = fork();
    if (pid < 0) {
        perror("fork");
        exit(2);
    }
    if (!pid) {
        std::string index = std::to_string(from);
        std::vector<char *> args(argv, argv + argc);
        char flag[] = "--from";
        args.push_back(flag);
        args.push_back(&index[0]);
        args.push_back(nullptr);
        setpgid(0, 0);
        dup2(ends[1], CASES_PIPE);
        if (ends[0] != CASES_PIPE)
            close(ends[0]);
        if (ends[1] != CASES_PIPE)
            close(ends[1]);
        execv("/proc/self/exe", args.data());
        _exit(127);
    }
    close(ends[1]);
    return {pid, ends[0], ""};
}

// The next message of the child. Returns 0 at the end of the pipe, -1 if the time is up.
static inline int cases_next(cases_watch &w, double until, std::string &line)
{
    for (;;) {
        size_t end = w.buffer.find('\n');
        if (end != std::string::npos) {
            line = w.buffer.substr(0, end);
            w.buffer.erase(0, end + 1);
            return 1;
        }
        double left = until - cases_now();
        if (left <= 0)
            return -1;
        struct pollfd p = {w.fd, POLLIN, 0};
        int n = poll(&p, 1, (int)(left * 1000) + 1);
        if (n < 0 && errno != EINTR)
            return 0;
        if (n <= 0)
            continue;
        char bytes[4096];
        ssize_t got = read(w.fd, bytes, sizeof(bytes));
        if (got <= 0)
            return 0;
        w.buffer.append(bytes, (size_t)got);
    }
}

// Ends the child. Returns how it ended, in words.
static inline std::string cases_stop(cases_watch &w, bool by_force)
{
    if (by_force)
        kill(-w.pid, SIGKILL), kill(w.pid, SIGKILL);
    int status = 0;
    double until = cases_now() + 10;
    while (waitpid(w.pid, &status, WNOHANG) == 0) {
        if (cases_now() > until) {
            kill(-w.pid, SIGKILL), kill(w.pid, SIGKILL);
            if (cases_now() > until + 10)
                return "it cannot be ended";
        }
        usleep(2000);
    }
    close(w.fd);
    if (WIFSIGNALED(status))
        return "signal " + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) +
               ")";
    return "exit status " + std::to_string(WEXITSTATUS(status));
}

// main() of a program of cases. Returns 1 if a case failed.
static inline int cases_main(const std::vector<test_case> &all, int argc, char **argv)
{
    std::vector<test_case> cases;
    std::vector<std::string> only;
    long from = -1;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--from") && i + 1 < argc)
            from = atol(argv[++i]);
        else if (!strcmp(argv[i], "--only") && i + 1 < argc)
            only.push_back(argv[++i]);
        else if (!strcmp(argv[i], "--list")) {
            for (const test_case &c : all)
                puts(c.name.c_str());
            return 0;
        }
    }
    for (const test_case &c : all) {
        bool wanted = only.empty();
        for (const std::string &o : only)
            wanted = wanted || c.name.find(o) != std::string::npos;
        if (wanted)
            cases.push_back(c);
    }
    if (from >= 0)
        return cases_child(cases, (size_t)from);
    if (cases.empty()) {
        fprintf(stderr, "no case has that in its name; --list shows them all\n");
        return 2;
    }
    size_t at = 0, passed = 0, failed = 0, skipped = 0;
    while (at < cases.size()) {
        size_t before = at;
        cases_watch w = cases_start(at, argc, argv);
        double began = cases_now(), until = began + 20;
        bool running = false;
        std::string line, last;
        int n;
        while ((n = cases_next(w, until, line)) > 0) {
            const char *text = line.c_str() + 1;
            if (line[0] == 'B') {
                at = (size_t)atol(text);
                running = true;
                began = cases_now();
                until = began + cases[at].limit_s;
                continue;
            }
            if (line[0] == 'L') {
                printf("   %s: %s\n", cases[at].name.c_str(), text);
                fflush(stdout);
                continue;
            }
            double took = cases_now() - began;
            if (line[0] == 'K') {
                printf("ok %s (%.1f s)%s%s\n", cases[at].name.c_str(), took, *text ? ": " : "",
                       text);
                passed++;
            } else if (line[0] == 'S') {
                printf("skipped %s: %s\n", cases[at].name.c_str(), text);
                skipped++;
            } else if (line[0] == 'F') {
                printf("FAILED %s: %s\n", cases[at].name.c_str(), text);
                failed++;
            } else {
                last = "all";
                at = cases.size();
                until = cases_now() + 15;
                continue;
            }
            fflush(stdout);
            running = false;
            last = cases[at].name;
            at++;
            until = cases_now() + 15; // the process may have to end first
        }
        std::string end = cases_stop(w, n < 0);
        if (!running && !last.empty() && (n < 0 || end.compare(0, 6, "signal") == 0)) {
            printf("FAILED %s, then the end of its process: %s\n", last.c_str(),
                   n < 0 ? "it does not end" : end.c_str());
            fflush(stdout);
            failed++;
        } else if (running || n < 0) {
            if (n < 0)
                printf("FAILED %s: no end after %.0f s\n", cases[at].name.c_str(),
                       cases_now() - began);
            else
                printf("FAILED %s: the process ended: %s\n", cases[at].name.c_str(), end.c_str());
            fflush(stdout);
            failed++;
            at++;
        } else if (at == before) {
            printf("FAILED %s: the process ended before the case began: %s\n",
                   cases[at].name.c_str(), end.c_str());
            failed++;
            at++;
        }
    }
    printf("%zu passed, %zu failed, %zu skipped\n", passed, failed, skipped);
    return failed ? 1 : 0;
}
