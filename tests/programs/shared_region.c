/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests a region that two programs share (ibv_exp_reg_shared_mr()), each with a device of its own.
 * The owner makes it and passes its number on. The other program registers the memory with its own
 * device, into which the owner then writes over the wire. The owner ends first.
 */
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "guest-lib/verbs/exp/include/infiniband/verbs_exp.h"
#include "tests/programs/own_wire.h"
#include "tests/programs/pair.h"

#define LEN    8192u
#define RIGHTS (IBV_EXP_ACCESS_LOCAL_WRITE | IBV_EXP_ACCESS_REMOTE_WRITE)
#define SHARED                                                                                     \
    (IBV_EXP_ACCESS_ALLOCATE_MR | IBV_EXP_ACCESS_SHARED_MR_USER_READ |                             \
     IBV_EXP_ACCESS_SHARED_MR_USER_WRITE)

/* A message from one program to the other. */
struct letter {
    union ibv_gid gid;
    uint32_t qpn, number, rkey;
    uint64_t addr;
};

static struct ibv_cq *cq;
static struct ibv_qp *qp;

static void tell(int fd, const struct letter *letter)
{
    must(write(fd, letter, sizeof(*letter)) == sizeof(*letter), "errno %d", errno);
}

static struct letter hear(int fd)
{
    struct letter letter;

    must(recv(fd, &letter, sizeof(letter), MSG_WAITALL) == sizeof(letter), "the other has ended");
    return letter;
}

static struct letter begin(void)
{
    struct letter own = {0};

    device_open();
    cq = ibv_create_cq(ctx[0], DEPTH, NULL, NULL, 0);
    must(cq, "errno %d", errno);
    qp = new_qp(0, cq, NULL);
    gid_of(0, &own.gid);
    own.qpn = qp->qp_num;
    return own;
}

static void end(void)
{
    must_be_0(ibv_destroy_qp(qp));
    must_be_0(ibv_destroy_cq(cq));
    device_close();
}

static struct ibv_mr *reg_shared(uint32_t number, uint64_t access)
{
    struct ibv_exp_reg_shared_mr_in in = {.mr_handle = number, .pd = pd[0], .exp_access = access};

    errno = 0;
    return ibv_exp_reg_shared_mr(&in);
}

/* The owner sends a text of its own memory into the region that the other has registered. It finds
 * the text in its own mapping. */
static void be_owner(int fd)
{
    struct ibv_exp_reg_mr_in in = {.length = LEN, .exp_access = RIGHTS | SHARED};
    struct letter own = begin(), other;
    char text[] = "written over the wire";
    struct ibv_sge sge = {.addr = (uintptr_t)text, .length = sizeof(text)};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE}, *bad;
    struct ibv_mr *shared, *mr = ibv_reg_mr(pd[0], text, sizeof(text), IBV_ACCESS_LOCAL_WRITE);

    in.pd = pd[0];
    shared = ibv_exp_reg_mr(&in);
    must(shared && mr, "errno %d", errno);
    strcpy(shared->addr, "from the owner");
    own.number = shared->handle;
    tell(fd, &own);
    other = hear(fd);
    to_rts_towards(qp, &other.gid, other.qpn, 14);
    sge.lkey = mr->lkey;
    wr.wr.rdma.remote_addr = other.addr;
    wr.wr.rdma.rkey = other.rkey;
    must_be_0(ibv_post_send(qp, &wr, &bad));
    success(cq);
    must(!strcmp((char *)shared->addr + LEN / 2, text), "the region has other content");
    _exit(0); /* without an end of its region */
}

static void be_other(int fd)
{
    struct letter own = begin(), owner = hear(fd);
    struct ibv_mr *mr = reg_shared(owner.number, RIGHTS);
    char byte;

    must(mr, "errno %d", errno);
    must(mr->length == LEN, "length %zu", mr->length);
    must(!strcmp(mr->addr, "from the owner"), "the region has other content");
    must(!reg_shared(owner.number, IBV_EXP_ACCESS_ON_DEMAND) && errno == EINVAL, "errno %d", errno);
    must(!reg_shared(owner.number, IBV_EXP_ACCESS_REMOTE_WRITE) && errno == EINVAL, "errno %d",
         errno);
    to_rts_towards(qp, &owner.gid, owner.qpn, 14);
    own.addr = (uintptr_t)mr->addr + LEN / 2;
    own.rkey = mr->rkey;
    tell(fd, &own);
    must(read(fd, &byte, 1) == 0, "the owner lives on"); /* until it ends */
    must(!strcmp((char *)mr->addr + LEN / 2, "written over the wire"), "the memory is gone");
    must(!reg_shared(owner.number, RIGHTS) && errno == EINVAL, "errno %d", errno);
    must_be_0(ibv_dereg_mr(mr));
    end();
}

START_TEST(two_programs_share_a_region)
{
    int fd[2], status;
    pid_t pid[2];

    must_be_0(socketpair(AF_UNIX, SOCK_STREAM, 0, fd));
    fflush(NULL);
    for (int i = 0; i < 2; i++) {
        pid[i] = fork();
        must(pid[i] >= 0, "errno %d", errno);
        if (!pid[i]) {
            close(fd[!i]);
            (i ? be_other : be_owner)(fd[i]);
            _exit(0);
        }
    }
    close(fd[0]);
    close(fd[1]);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(waitpid(pid[i], &status, 0), pid[i]);
        ck_assert_int_eq(status, 0);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("shared_region");
    TCase *tc = tcase_create("shared_region");

    tcase_set_timeout(tc, 2 * SECONDS);
    tcase_add_test(tc, two_programs_share_a_region);
    suite_add_tcase(s, tc);
    return run_on_own_wire(s, "shared_region");
}
