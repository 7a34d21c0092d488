#include "backend/range_eraser.h"

#include <fcntl.h>
#include <linux/falloc.h>

#include <algorithm>
#include <cerrno>

#include "backend/failure.h"
#include "backend/zeros.h"

namespace sluice::backend {
namespace {

// Zeros are written in steps of this size.
constexpr uint64_t kWriteStep = uint64_t{1} << 20;  // bytes
static_assert(kWriteStep <= kZerosSize);

bool is_refusal(int64_t result) {
  // Some drivers and older filesystems answer EINVAL to an unknown fallocate mode.
  return result == -EOPNOTSUPP || result == -ENOSYS || result == -EINVAL;
}

int fallocate_mode(RangeMethod method) {
  return FALLOC_FL_KEEP_SIZE |
         (method == RangeMethod::kPunchHole ? FALLOC_FL_PUNCH_HOLE : FALLOC_FL_ZERO_RANGE);
}

}  // namespace

void RangeEraser::refuse(RangeMethod method) {
  refused_.fetch_or(static_cast<uint8_t>(1u << static_cast<unsigned>(method)),
                    std::memory_order_relaxed);
}

RangeEraser::Progress RangeEraser::begin(Io& io) {
  RangeMethod method = medium_.discard;
  if (io.op == Op::kWriteZeroes) {
    method = (io.flags & kIoMayUnmap) != 0 ? RangeMethod::kPunchHole : RangeMethod::kZeroRange;
  }
  io.priv.a = 0;
  io.priv.b = static_cast<uint64_t>(method);
  return step(io);
}

// Starts the next step.
RangeEraser::Progress RangeEraser::step(Io& io) {
  auto method = static_cast<RangeMethod>(io.priv.b);
  while (method < RangeMethod::kWriteZeros && refused(method)) {
    method = static_cast<RangeMethod>(static_cast<unsigned>(method) + 1);
  }
  io.priv.b = static_cast<uint64_t>(method);
  AioOp& op = io.aio = AioOp{};
  op.fd = medium_.fd;
  op.offset = medium_.base + io.offset + io.priv.a;
  op.length = io.length - io.priv.a;
  op.done = step_done_;
  op.context = &io;
  if (method == RangeMethod::kWriteZeros) {
    op.length = std::min(op.length, kWriteStep);
    // Never written to: iovec has no const form.
    io.priv.iov = {const_cast<uint8_t*>(zeros()), op.length};
    op.kind = AioOp::Kind::kWritev;
    op.iov = &io.priv.iov;
    op.iovcnt = 1;
  } else if (method == RangeMethod::kDeviceDiscard) {
    op.kind = AioOp::Kind::kDiscard;
  } else {
    op.kind = AioOp::Kind::kFallocate;
    op.mode = fallocate_mode(method);
  }
  io.priv.aio->submit_blocking(op, *medium_.threads, medium_.strand);
  return Progress::kSubmitted;
}

RangeEraser::Progress RangeEraser::advance(Io& io, int64_t result) {
  const auto method = static_cast<RangeMethod>(io.priv.b);
  if (result == -EINTR) return step(io);
  if (method < RangeMethod::kWriteZeros && is_refusal(result)) {
    refuse(method);
    return step(io);
  }
  if (result < 0) {
    io.result = contract_errno(result);
    return Progress::kFailed;
  }
  if (method != RangeMethod::kWriteZeros) return Progress::kErased;
  const int64_t written = result - result % medium_.block_size;
  if (written == 0) {
    io.result = -EIO;
    return Progress::kFailed;
  }
  io.priv.a += static_cast<uint64_t>(written);
  return io.priv.a < io.length ? step(io) : Progress::kErased;
}

}  // namespace sluice::backend
