#include "backend/blocking_call.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>

namespace sluice::backend {

int32_t run_blocking(AioOp& op) {
  const auto offset = static_cast<off_t>(op.offset);
  const auto length = static_cast<off_t>(op.length);
  ssize_t n = -1;
  switch (op.kind) {
    case AioOp::Kind::kReadv:
      n = preadv2(op.fd, op.iov, static_cast<int>(op.iovcnt), offset, op.rw_flags);
      break;
    case AioOp::Kind::kWritev:
      n = pwritev2(op.fd, op.iov, static_cast<int>(op.iovcnt), offset, op.rw_flags);
      if (n < 0 && errno == ENOSPC && op.call != nullptr) {
        op.call(op);
        errno = ENOSPC;
      }
      break;
    case AioOp::Kind::kFdatasync:
      n = fdatasync(op.fd);
      break;
    case AioOp::Kind::kFallocate:
      n = fallocate(op.fd, op.mode, offset, length);
      break;
    case AioOp::Kind::kDiscard: {
      uint64_t range[2] = {op.offset, op.length};
      n = ioctl(op.fd, BLKDISCARD, range);
      break;
    }
    case AioOp::Kind::kCall:
      op.call(op);
      n = 0;
      break;
    case AioOp::Kind::kTimeout:
    case AioOp::Kind::kPoll:
    case AioOp::Kind::kExternal:
      assert(false);
      errno = EINVAL;
      break;
  }
  return static_cast<int32_t>(n < 0 ? -errno : n);
}

}  // namespace sluice::backend
