#include "backend/writeback_losses.h"

#include <cerrno>

namespace sluice::backend {
namespace {

// A filesystem may refuse space although some is left, which it needs for metadata.
constexpr uint64_t kScarce = uint64_t{16} << 20;  // bytes

// Whether pages of the file, possibly of other requests, did not reach the medium. The kernel
// passes on the device's error: EIO, but also ENODATA, ENOLINK, ETIMEDOUT and others.
bool is_loss(const Io& io, int64_t result, const std::optional<uint64_t>& free_bytes) {
  switch (-result) {
    case EOPNOTSUPP:
    case EINVAL:
    case EFBIG:
    case EFAULT:
    case EAGAIN:
    case EINTR:
    case ECANCELED:  // refused or cancelled before any page was examined
      return false;
    case EDQUOT:
      return io.aio.kind != AioOp::Kind::kWritev;
    case ENOSPC:
      // A write without space from the filesystem has no page. If there is enough space, or none
      // was requested, the layer below had no space for a page (thin provisioning).
      return !free_bytes || *free_bytes > io.length + kScarce;
    default:
      return result < 0;
  }
}

}  // namespace

int64_t WritebackLosses::outcome(const Io& io, int64_t result,
                                 const std::optional<uint64_t>& free_bytes) {
  if (is_loss(io, result, free_bytes)) count_.fetch_add(1, std::memory_order_acq_rel);
  const uint64_t losses = count();
  bool lost = io.priv.seen != losses;
  if (io.op == Op::kFlush) {
    lost = flushed_at_.exchange(losses, std::memory_order_acq_rel) != losses || lost;
  }
  return lost && result >= 0 ? -EIO : result;
}

}  // namespace sluice::backend
