#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs DeepEP's low-latency kernels between processes that share one GPU, and compares every result. Uses DeepEP as it is.

    deepep_low_latency.py [--experts N] [--topk N] [--tokens N] [--hidden N[,N...]]

scripts/gpu-check starts the processes. The variables GPU_CHECK_RANK and GPU_CHECK_COUNT say which process this is and how
many there are. The processes exchange objects by files whose names begin with GPU_CHECK_FILE, because NCCL refuses two ranks on
one GPU. No such file may exist at the start.

Each process knows what the others send: it makes their tokens itself, from the same seeds. Each process prints a line for each
case. A case has passed if it has passed in all processes. Lines that begin with "@|" are measurements of rank 0, as in
kernel_post.cu: what, queue, data, operation, bytes of a token, microseconds (median, mean)."""

import argparse
import ctypes
import faulthandler
import os
import pickle
import statistics
import sys
import threading
import time

# DeepEP's own test sends 128 tokens. For 128 tokens, the combine kernel waits inside itself for 64 multiprocessors in each
# process at the same time. Two processes that had 66 multiprocessors each under MPS did not run such kernels at the same time
# on an H200, so the kernels waited for each other for ever.
parser = argparse.ArgumentParser()
parser.add_argument('--experts', type=int, default=8, help='experts of all processes together')
parser.add_argument('--topk', type=int, default=4, help='experts of a token')
parser.add_argument('--tokens', type=int, default=32, help='tokens of a process')
parser.add_argument('--hidden', default='2048,7168', help='elements of a token; most cases use the first number')
options = parser.parse_args()
EXPERTS, TOPK, TOKENS = options.experts, options.topk, options.tokens
HIDDENS = [int(h) for h in options.hidden.split(',')]
HIDDEN = HIDDENS[0]
START_LIMIT, CASE_LIMIT = 60, 20  # seconds
ROUNDS = 20

rank, count = int(os.environ['GPU_CHECK_RANK']), int(os.environ['GPU_CHECK_COUNT'])
local = EXPERTS // count  # experts of a process
buffer = None
torch = deep_ep = None  # start() imports them


def say(text):
    ctypes.CDLL(None).fflush(None)  # what NVSHMEM has printed may end within a line
    print(text, flush=True)


class Watch:
    """Ends the process if a case takes too long: a kernel that waits cannot be cancelled."""

    def __init__(self):
        self.begin('start', START_LIMIT)
        threading.Thread(target=self.look, daemon=True).start()

    def begin(self, case, seconds):
        self.case, self.seconds, self.until = case, seconds, time.monotonic() + seconds

    def look(self):
        while time.monotonic() < self.until:
            time.sleep(0.1)
        say(f'FAILED {self.case}: no end after {self.seconds} s')
        faulthandler.dump_traceback(all_threads=True)
        os._exit(3)


class Files:
    """A communicator with the calls that deep_ep.Buffer makes to one of mpi4py."""

    def __init__(self, path):
        self.path, self.turn = path, 0

    def name(self, turn, who):
        return f'{self.path}.{turn}.{who}'

    def Get_rank(self):
        return rank

    def Get_size(self):
        return count

    def allgather(self, mine):
        self.turn += 1
        new, objects = self.name(self.turn, f'{rank}.new'), []
        with open(new, 'wb') as f:
            pickle.dump(mine, f)
        os.rename(new, self.name(self.turn, rank))
        for r in range(count):
            while not os.path.exists(self.name(self.turn, r)):
                time.sleep(0.001)
            with open(self.name(self.turn, r), 'rb') as f:
                objects.append(pickle.load(f))
        # Each process has written its file of this turn, so it has read all files of the turn before.
        if self.turn > 1:
            os.unlink(self.name(self.turn - 1, rank))
        return objects


files = Files(os.environ['GPU_CHECK_FILE'])


class Wrong(Exception):
    """A result that differs from what it must be."""


def want(condition, text):
    if not condition:
        raise Wrong(text)


# ---- What is sent ----


class Tokens:
    """What all processes send in a case, on the CPU: x[rank], idx[rank] (experts of each token) and weights[rank]. `mine` is the part
    of this process, on the GPU. With `expert`, each token goes only to this expert of the next process."""

    def __init__(self, seed, tokens, hidden, scale=1.0, expert=None):
        self.tokens, self.hidden = tokens, hidden
        self.x, self.idx, self.weights = [], [], []
        for r in range(count):
            g = torch.Generator().manual_seed(1000 * seed + r)
            self.x.append((torch.randn((tokens, hidden), generator=g) * scale).to(torch.bfloat16))
            idx = torch.stack([torch.randperm(EXPERTS, generator=g)[:TOPK] for _ in range(tokens)]).to(torch.int64)
            if expert is not None:
                idx[:] = -1
                idx[:, 0] = (r + 1) % count * local + expert
            elif tokens > 2:  # some choices are empty, and one token goes nowhere
                idx[torch.rand((tokens, TOPK), generator=g) < 0.1] = -1
                idx[1] = -1
            self.idx.append(idx)
            self.weights.append(torch.rand((tokens, TOPK), generator=g) + 0.1)
        self.mine = [t[rank].cuda() for t in (self.x, self.idx, self.weights)]

    def expected(self, expert, source):
        """The numbers of the source's tokens that go to this expert, in ascending order."""
        return (self.idx[source] == expert).any(dim=1).nonzero().view(-1)


def factor(expert):
    """By what an expert multiplies its tokens: exact in bfloat16 for up to 248 experts."""
    return 1 + expert / 8


def work(values):
    """What the experts of this process answer. Rows without a token may hold anything before."""
    values = values.nan_to_num(0, 0, 0)
    for e in range(local):
        values[e] *= factor(rank * local + e)
    return values.to(torch.bfloat16).cuda()


# ---- Checks ----


def scales_of(scales, ue8m0):
    """Scales as float32. UE8M0 scales are exponents, four in an int32."""
    scales = scales.cpu().contiguous()
    if not ue8m0:
        return scales
    exponents = scales.view(torch.uint8).view(scales.size(0), scales.size(1), -1).to(torch.int32)
    return (exponents << 23).view(torch.float32)


def check_fp8(where, sent, got, scales, round_scale):
    """Tokens that came as FP8 E4M3: 128 elements share a scale, by which the largest of them becomes 448."""
    most = sent.view(len(sent), -1, 128).abs().amax(dim=2).clamp(min=1e-4)
    if round_scale:
        mantissa, _ = torch.frexp(scales)
        want((mantissa == 0.5).all() and (scales * 448 >= most * 0.999).all() and (scales * 448 <= most * 2.001).all(),
             f'{where}: a scale is no power of two, or is wrong')
    else:
        want(torch.allclose(scales * 448, most, rtol=1e-5), f'{where}: a scale is wrong')
    # Rounding to a mantissa of three bits, or to the smallest number.
    bound = sent.abs() / 16 * 1.01 + (scales * 2 ** -10 * 1.01).repeat_interleave(128, dim=1)
    bad = ((got - sent).abs() > bound).any(dim=1)
    want(not bad.any(), f'{where}: {int(bad.sum())} of {len(sent)} tokens differ')


def check_bf16(where, sent, got):
    bad = (sent != got).any(dim=1)
    if bad.any():
        element = int((sent != got)[bad][0].nonzero()[0])
        raise Wrong(f'{where}: {int(bad.sum())} of {len(sent)} tokens differ, the first at element {element}')


def check_dispatch(data, result, fp8, round_scale, ue8m0, stats):
    """Compares what has arrived. Returns it as float32 on the CPU, [local experts, rows, hidden], and the number of tokens."""
    received, counts, handle = result
    source, ranges, counts, total = handle[0].cpu(), handle[1].cpu(), counts.cpu(), 0
    if fp8:
        values, scales = received[0].cpu().to(torch.float32), scales_of(received[1], ue8m0)
        values = (values.view(local, values.size(1), -1, 128) * scales.unsqueeze(-1)).view(values.shape)
    else:
        values = received.cpu().to(torch.float32)
    for e in range(local):
        expert = rank * local + e
        wanted = [data.expected(expert, r) for r in range(count)]
        number = sum(len(w) for w in wanted)
        want(counts[e].item() == number, f'expert {expert}: {counts[e].item()} tokens, should be {number}')
        want(stats[e].item() == number, f'expert {expert}: the statistics say {stats[e].item()} tokens, should be {number}')
        for r in range(count):
            # The rows that came from process r: the first one above, the number of them in the lower 32 bits.
            where, word = f'expert {expert}, process {r}', ranges[e, r].item()
            begin, n = word >> 32, word & 0xffffffff
            want(n == len(wanted[r]), f'{where}: {n} tokens, should be {len(wanted[r])}')
            rows = source[e, begin:begin + n].to(torch.int64)
            want(torch.equal(rows.sort().values, wanted[r]), f'{where}: other tokens came: {rows.tolist()[:8]}')
            total += n
            if n == 0:
                continue
            sent, got = data.x[r][rows].to(torch.float32), values[e, begin:begin + n]
            if fp8:
                check_fp8(where, sent, got, scales[e, begin:begin + n], round_scale)
            else:
                check_bf16(where, sent, got)
    return values, total


def check_combine(data, out, fp8, logfmt):
    """Compares the sum of the experts' answers. Only FP8 and LogFMT lose more than the last rounding."""
    out = out.cpu().to(torch.float32)
    x, idx, weights = data.x[rank].to(torch.float32), data.idx[rank], data.weights[rank]
    reference, size = torch.zeros_like(x), torch.zeros_like(x)
    for k in range(TOPK):
        factors = torch.tensor([factor(e) if e >= 0 else 0.0 for e in idx[:, k].tolist()]).view(-1, 1)
        term = (x * factors).to(torch.bfloat16).to(torch.float32) * weights[:, k].view(-1, 1)
        reference += term
        size += term.abs()
    want(not out.isnan().any(), 'a result is not a number')
    if fp8 or logfmt:
        error = ((out - reference).norm() / reference.norm()).item()
        want(error < (0.05 if fp8 else 0.02), f'the results are off by {error:.2%}')
        return f'off by {error:.2%}'
    bad = ((out - reference).abs() > reference.abs() * 2 ** -7 + size * 1e-5).any(dim=1)
    if bad.any():
        raise Wrong(f'{int(bad.sum())} of {len(out)} results differ, the first is of token {int(bad.nonzero()[0])}')
    return 'equal'


# ---- Calls of DeepEP ----


def arrive(hook, event):
    """Waits until the result is there. With a hook, the first kernel only sends, and the hook starts the kernel that receives."""
    torch.cuda.synchronize()
    if hook is not None:
        hook()
    elif event.event is not None:
        event.current_stream_wait()
    torch.cuda.synchronize()


def dispatch(data, fp8=False, round_scale=False, ue8m0=False, hook=False, event=True):
    """Sends the tokens to their experts, and compares what comes. Returns it, DeepEP's handle, and the number of tokens."""
    stats = torch.zeros((local,), dtype=torch.int32).cuda()
    files.allgather('dispatch')
    received, counts, handle, done, recv_hook = buffer.low_latency_dispatch(
        data.mine[0], data.mine[1], TOKENS, EXPERTS, cumulative_local_expert_recv_stats=stats, use_fp8=fp8, round_scale=round_scale,
        use_ue8m0=ue8m0, async_finish=event and not hook, return_recv_hook=hook)
    arrive(recv_hook, done)
    values, total = check_dispatch(data, (received, counts, handle), fp8, round_scale, ue8m0, stats)
    return values, handle, total


def combine(data, values, handle, fp8=False, hook=False, event=True, zero_copy=False, logfmt=False):
    """Sends the experts' answers back, and compares their sums. Returns how close they are."""
    answers = work(values)
    if zero_copy:
        buffer.get_next_low_latency_combine_buffer(handle)[:, :, :] = answers
    out = torch.zeros((data.tokens, data.hidden), dtype=torch.bfloat16).cuda()
    torch.cuda.synchronize()
    files.allgather('combine')
    _, done, recv_hook = buffer.low_latency_combine(answers, data.mine[1], data.mine[2], handle, use_logfmt=logfmt, zero_copy=zero_copy,
                                                    async_finish=event and not hook, return_recv_hook=hook, out=out)
    arrive(recv_hook, done)
    return check_combine(data, out, fp8, logfmt)


# ---- Cases. Each returns what is worth saying ----


def start():
    global torch, deep_ep, buffer
    import torch
    torch.cuda.set_device(0)
    torch.zeros(1).cuda()
    import deep_ep
    size = max(deep_ep.Buffer.get_low_latency_rdma_size_hint(TOKENS, h, count, EXPERTS) for h in HIDDENS)
    buffer = deep_ep.Buffer(None, 0, size, low_latency_mode=True, num_qps_per_rank=local, allow_nvlink_for_low_latency_mode=False,
                            explicitly_destroy=True, comm=files)
    gpu = torch.cuda.get_device_properties(0)
    return f'{gpu.name}, {gpu.multi_processor_count} multiprocessors, a buffer of {size} bytes, {local} queue pairs to each process'


def only_dispatch(tokens, expert=None):
    _, _, total = dispatch(Tokens(20, tokens, HIDDEN, expert=expert), hook=True)
    return f'{total} tokens have arrived'


def both(seed, tokens=TOKENS, hidden=HIDDEN, scale=1.0, round_scale=False, ue8m0=False, **how):
    data = Tokens(seed, tokens, hidden, scale)
    of_both = {k: v for k, v in how.items() if k in ('fp8', 'hook', 'event')}
    values, handle, total = dispatch(data, round_scale=round_scale, ue8m0=ue8m0, **of_both)
    said = combine(data, values, handle, **how)
    return f'{total} tokens have arrived, the results are {said}'


def clean():
    torch.cuda.synchronize()
    buffer.clean_low_latency_buffer(TOKENS, HIDDEN, EXPERTS)
    torch.cuda.synchronize()


def measure(hidden, fp8):
    """Measures from the call until the GPU is idle. Compares only the first dispatch."""
    data, times = Tokens(99, TOKENS, hidden), []
    values, handle, _ = dispatch(data, fp8=fp8)
    answers = work(values)
    out = torch.zeros((data.tokens, data.hidden), dtype=torch.bfloat16).cuda()
    buffer.low_latency_combine(answers, data.mine[1], data.mine[2], handle, async_finish=True, out=out)
    for _ in range(ROUNDS):
        torch.cuda.synchronize()
        files.allgather('round')
        a = time.perf_counter()
        _, _, handle, _, _ = buffer.low_latency_dispatch(data.mine[0], data.mine[1], TOKENS, EXPERTS, use_fp8=fp8, async_finish=True)
        torch.cuda.synchronize()
        b = time.perf_counter()
        out, _, _ = buffer.low_latency_combine(answers, data.mine[1], data.mine[2], handle, async_finish=True)
        torch.cuda.synchronize()
        times.append(((b - a) * 1e6, (time.perf_counter() - b) * 1e6))
    medians = []
    # Combine sends BF16, whatever dispatch sent. Scales are not counted.
    for what, size, t in (f'dispatch {"FP8" if fp8 else "BF16"}', hidden * (1 if fp8 else 2), [t[0] for t in times]), \
            ('combine BF16', hidden * 2, [t[1] for t in times]):
        say(f'@|DeepEP, {count} processes|{os.environ.get("GPU_CHECK_QUEUE", "")}|{os.environ.get("GPU_CHECK_HEAP", "")}|'
            f'{what}, {TOKENS} tokens to {TOPK} of {EXPERTS} experts|{size}|{statistics.median(t):.2f}|{statistics.mean(t):.2f}')
        medians.append(f'{what} {statistics.median(t):.0f} us')
    return ', '.join(medians)


def destroy():
    torch.cuda.synchronize()
    buffer.destroy()


CASES = {
    'start': start,
    'dispatch of 4 tokens to one expert, BF16, hook': lambda: only_dispatch(4, expert=0),
    'dispatch, BF16, hook': lambda: only_dispatch(TOKENS),
    'dispatch and combine, BF16, hook': lambda: both(1, hook=True),
    'dispatch and combine, BF16': lambda: both(2),
    'dispatch and combine, FP8, hook': lambda: both(3, fp8=True, hook=True),
    'dispatch and combine, FP8': lambda: both(4, fp8=True),
    'dispatch and combine, FP8, rounded scales': lambda: both(5, fp8=True, round_scale=True),
    'dispatch and combine, FP8, scales UE8M0': lambda: both(6, fp8=True, round_scale=True, ue8m0=True),
    'combine, zero copy, hook': lambda: both(7, zero_copy=True, hook=True),
    'combine, zero copy': lambda: both(8, zero_copy=True),
    'combine, LogFMT': lambda: both(9, scale=0.1, logfmt=True),
    'one token of each process': lambda: both(10, tokens=1),
    'one stream waits for the other': lambda: both(11, event=False),
}
for h in HIDDENS[1:]:
    CASES[f'dispatch and combine, BF16, hidden {h}'] = lambda h=h: both(12, hidden=h)
    CASES[f'dispatch and combine, FP8, hidden {h}, hook'] = lambda h=h: both(13, hidden=h, fp8=True, hook=True)
    CASES[f'measured, FP8, hidden {h}'] = lambda h=h: measure(h, True)
CASES[f'measured, BF16, hidden {HIDDEN}'] = lambda: measure(HIDDEN, False)
CASES["clean, with NVSHMEM's barrier in a kernel"] = clean
CASES['dispatch and combine, BF16, after clean'] = lambda: both(14)
CASES['destroy'] = destroy


def main():
    watch, failed = Watch(), 0
    for name, case in CASES.items():
        watch.begin(name, START_LIMIT if name == 'start' else CASE_LIMIT)
        why = None
        try:
            said = case()
        except Wrong as e:
            why = str(e)
        except Exception as e:  # also DeepEP's own
            why = f'{type(e).__name__}: {e}'.replace('\n', ' ')[:400]
        if why:
            failed += 1
            say(f'FAILED {name}: {why}')
            # Without a buffer, or after an error of the CUDA context, all further cases fail too.
            if name == 'start' or 'CUDA' in why:
                break
        else:
            say(f'ok {name}' + (f': {said}' if said else ''))
        if name != 'destroy':
            watch.begin(f'{name}, in another process', CASE_LIMIT)
            files.allgather('next case')
    sys.stdout.flush()
    os._exit(1 if failed else 0)  # the destructors of a process whose kernel failed may wait for ever


main()
