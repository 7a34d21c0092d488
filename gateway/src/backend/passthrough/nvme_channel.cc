#include "passthrough/nvme_channel.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "backend/failure.h"
#include "backend/zeros.h"
#include "passthrough/nvme_status.h"

namespace sluice::passthrough {
namespace {

using backend::Io;
using backend::Op;

std::string remedy_of(int error) {
  if (error == EINVAL) return "NVMe passthrough needs Linux 5.19";
  if (error == ENOMEM) return "raise RLIMIT_MEMLOCK";
  if (error == EPERM) return "allow io_uring (kernel.io_uring_disabled, seccomp)";
  return "see the kernel's log";
}

// What the kernel itself says, in place of the drive.
int error_of(int32_t negative_errno) {
  // The kernel aborted the command: it timed out, or its controller was reset.
  return negative_errno == -EINTR || negative_errno == -ECANCELED ? -ETIMEDOUT : negative_errno;
}

void answer(Io& io, const NvmeOutcome& outcome) {
  io.result = -outcome.error;
  io.answer.status = static_cast<uint8_t>(outcome.status);
  io.answer.sense_size =
      outcome.status == scsi::Status::kCheckCondition
          ? static_cast<uint8_t>(scsi::encode(outcome.sense, false, io.answer.sense))
          : uint8_t{0};
}

}  // namespace

NvmeChannel::NvmeChannel(Aio& aio, const NvmeShared& shared)
    : Channel(aio), shared_(shared), requests_(kDepth) {
  for (Request& request : requests_) {
    request.next = free_;
    free_ = &request;
  }
}

NvmeChannel::~NvmeChannel() {
  if (ring_open_) io_uring_queue_exit(&ring_);
}

Result<std::unique_ptr<Channel>> NvmeChannel::open(Aio& aio, const NvmeShared& shared) {
  std::unique_ptr<NvmeChannel> channel(new NvmeChannel(aio, shared));
  if (Result<void> up = channel->set_up(); !up) return Error{up.error()};
  return Result<std::unique_ptr<Channel>>(std::move(channel));
}

Result<void> NvmeChannel::set_up() {
  io_uring_params params = {};
  params.flags = IORING_SETUP_SQE128 | IORING_SETUP_CQE32;
  int error = -io_uring_queue_init_params(kDepth, &ring_, &params);
  if (error == 0) {
    ring_open_ = true;
    event_ = FileDescriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    error = event_.valid() ? -io_uring_register_eventfd(&ring_, event_.get()) : errno;
  }
  if (error == 0) return {};
  return backend::fail("io_uring for NVMe passthrough", backend::why(error), remedy_of(error));
}

bool NvmeChannel::must_be_durable(const Io& io) const {
  return (io.flags & backend::kIoFua) != 0 || !shared_.write_cache.load(std::memory_order_relaxed);
}

void NvmeChannel::describe_data(Request& request, const NvmeStep& step, io_uring_sqe& sqe) const {
  nvme_uring_cmd command = step.command;
  const Io& io = *request.io;
  sqe.cmd_op = NVME_URING_CMD_IO;
  if (step.source == Source::kList) {
    request.range = step.range;
    command.addr = reinterpret_cast<uintptr_t>(&request.range);
    command.data_len = sizeof request.range;
  } else if (step.source == Source::kZeros) {
    command.addr = reinterpret_cast<uintptr_t>(backend::zeros());
    command.data_len = static_cast<uint32_t>(step.bytes);
  } else if (step.source == Source::kIov) {
    const iovec* iov = io.iov;
    uint32_t count = io.iovcnt;
    if (step.bytes < io.length) {
      trim(io, step.bytes, request.iov);
      iov = request.iov.data();
      count = static_cast<uint32_t>(request.iov.size());
    }
    if (count > 1) sqe.cmd_op = NVME_URING_CMD_IO_VEC;
    command.addr = reinterpret_cast<uintptr_t>(count > 1 ? iov : iov->iov_base);
    command.data_len = count > 1 ? count : static_cast<uint32_t>(iov->iov_len);
  }
  std::memcpy(sqe.cmd, &command, sizeof command);
}

Channel::Sent NvmeChannel::send(Io& io) {
  io_uring_sqe* sqe = free_ ? io_uring_get_sqe(&ring_) : nullptr;
  if (!sqe) return Sent::kFull;
  Request& request = *free_;
  free_ = request.next;
  request.io = &io;
  const NvmeStep step = next_step(io, shared_.traits, must_be_durable(io));
  request.bytes = step.bytes;
  std::memset(sqe, 0, 2 * sizeof *sqe);
  sqe->opcode = IORING_OP_URING_CMD;
  sqe->fd = shared_.fd;
  sqe->user_data = reinterpret_cast<uintptr_t>(&request);
  describe_data(request, step, *sqe);
  hand_over();
  return Sent::kSent;
}

// Entries that the kernel has no memory for just now stay in the ring.
void NvmeChannel::hand_over() {
  int submitted = 0;
  do {
    submitted = io_uring_submit(&ring_);
  } while (submitted == -EINTR);
  if (submitted < 0 || io_uring_sq_ready(&ring_) != 0) check_again_soon();
}

Channel::Collected NvmeChannel::collect() {
  io_uring_cqe* cqe = nullptr;
  if (io_uring_peek_cqe(&ring_, &cqe) != 0 || !cqe) {
    // Reset before the last check, so that no completion is missed: the next one signals again.
    uint64_t count = 0;
    if (::read(event_.get(), &count, sizeof count) == sizeof count) return collect();
    if (io_uring_sq_ready(&ring_) != 0) hand_over();
    return {};
  }
  auto& request = *reinterpret_cast<Request*>(cqe->user_data);  // NOLINT
  const int32_t result = cqe->res;
  io_uring_cqe_seen(&ring_, cqe);
  Io& io = *request.io;
  request.next = free_;
  free_ = &request;
  return {&io, settle(io, request.bytes, result)};
}

// True: the request is over.
bool NvmeChannel::settle(Io& io, uint64_t bytes, int32_t result) const {
  Progress progress(io);
  if (result != 0) {
    if (result < 0) {
      io.result = error_of(result);
      return true;
    }
    const NvmeOutcome outcome = outcome_of(static_cast<uint16_t>(result));
    if (outcome.retry && progress.retry()) return false;
    answer(io, outcome);
    return true;
  }
  progress.succeeded();
  if (io.op == Op::kRead || io.op == Op::kWrite) {
    io.result = static_cast<int64_t>(bytes);
    return true;
  }
  io.result = 0;
  if (progress.stage() == Progress::Stage::kFlush) return true;
  progress.done() += bytes;
  if (progress.done() < io.length) return false;
  if (!needs_flush(io, shared_.traits, must_be_durable(io))) return true;
  progress.flush_next();
  return false;
}

}  // namespace sluice::passthrough
