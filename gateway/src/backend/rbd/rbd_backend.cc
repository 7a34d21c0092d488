#include "rbd/rbd_backend.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "backend/failure.h"
#include "backend/range.h"
#include "backend/size_text.h"
#include "base/limits.h"
#include "rbd/ceph_executor.h"

namespace sluice::rbd {
namespace {

using backend::Backend;
using backend::fail;
using backend::Io;
using backend::Op;
using backend::Spec;

constexpr uint32_t kDiscardUnit = 4096;  // bytes; as RadosClient sets rbd_discard_granularity_bytes

}  // namespace

void install() { backend::set_opener("rbd", &RbdBackend::open); }

RbdBackend::RbdBackend(std::shared_ptr<ServedImage> image) : image_(std::move(image)) {
  info_.discard_granularity = std::max(kDiscardUnit, image_->spec().block_size);
  info_.discard_zeroes = true;
  info_.thin = true;
  info_.read_only = image_->spec().read_only;
}

Result<std::unique_ptr<Backend>> RbdBackend::open(const Spec& spec) {
  auto image = std::make_shared<ServedImage>(spec);
  const Result<void> opened = wait_for_ceph<void>(image->group(), spec.path, limits::kImageOpens,
                                                  [image] { return image->open(); });
  if (!opened) return Error{opened.error()};
  return Result<std::unique_ptr<Backend>>(std::make_unique<RbdBackend>(std::move(image)));
}

RbdBackend::~RbdBackend() {
  if (!closed_) close([] {});
}

void RbdBackend::close(std::function<void()> closed) {
  closed_ = true;
  image_->begin_closing();
  ceph_executor().post({image_->group()}, [image = image_, closed = std::move(closed)] {
    image->shut();
    closed();
  });
}

int RbdBackend::refusal(const Io& io) const {
  if (io.op == Op::kFlush || io.op == Op::kCheckFence) return 0;
  if (io.length == 0 || !backend::within(io.offset, io.length, size_bytes())) return -EINVAL;
  if (io.op != Op::kRead && info_.read_only) return -EROFS;
  if (io.op == Op::kWrite && (io.flags & backend::kIoAtomic)) return -EOPNOTSUPP;
  return 0;
}

// Every write is durable when it completes: rbd_cache is off, so fua asks for nothing more.
bool RbdBackend::submit(Io& io, Aio& aio) {
  int refused = refusal(io);
  // Nothing is ever dirty.
  if (refused < 0 || (io.op == Op::kFlush && info_.read_only)) {
    io.result = refused;
    return true;
  }
  ServedImage::Slot* slot = image_->enter();
  if (!slot || slot->in_flight.fetch_add(1) >= limits::kMaxImageRequests) [[unlikely]] {
    io.result = slot ? -EAGAIN : -ESHUTDOWN;
    if (!slot) return true;
    slot->in_flight.fetch_sub(1);
    ServedImage::leave(*slot);
    return true;
  }
  io.priv.backend = this;
  io.priv.aio = &aio;
  io.priv.p = slot;
  io.aio = AioOp{};
  io.aio.kind = AioOp::Kind::kExternal;
  io.aio.done = &RbdBackend::on_done;
  io.aio.context = &io;
  aio.submit(io.aio);
  const int r = slot->image->start(io);
  ServedImage::leave(*slot);
  if (r < 0) [[unlikely]]
    aio.complete(io.aio, r);
  return false;
}

void RbdBackend::on_done(AioOp& op, int32_t result) {
  Io& io = *static_cast<Io*>(op.context);
  io.result = static_cast<RbdBackend*>(io.priv.backend)->settle(io, result);
  static_cast<ServedImage::Slot*>(io.priv.p)->in_flight.fetch_sub(1);
  io.done(io);
}

int64_t RbdBackend::settle(const Io& io, int32_t result) const {
  if (io.op == Op::kCheckFence && image_->fenced()) return -ESHUTDOWN;
  if (result >= 0) [[likely]]
    return io.op == Op::kWrite ? static_cast<int64_t>(io.length) : result;
  // librbd says so when the lock was taken from us; whether we may write was looked at before.
  if (result != -ESHUTDOWN && result != -EROFS) return result;
  image_->fence(result == -ESHUTDOWN);
  return -ESHUTDOWN;
}

Result<void> RbdBackend::set_write_cache(bool on) {
  if (!on) return {};
  return fail(image_->spec().path, "an image of Ceph has no cache that could be lost",
              "leave the write cache off");
}

Result<backend::Extent> RbdBackend::allocation(uint64_t offset, uint64_t limit) const {
  const uint64_t size = size_bytes();
  if (limit == 0 || offset >= size) return Error{"allocation asked beyond the end"};
  return backend::Extent{std::min(limit, size - offset), true};
}

Result<void> RbdBackend::resize(uint64_t new_size) {
  const Spec& spec = image_->spec();
  if (new_size != 0 && new_size < size_bytes()) {
    return fail(spec.path,
                "can't shrink from " + backend::format_size(size_bytes()) + " to " +
                    backend::format_size(new_size) + ", data would be lost",
                "make a smaller volume and copy");
  }
  if (new_size % spec.block_size != 0) {
    return fail(spec.path, "new size is no multiple of the block size",
                "round it up to " + std::to_string(spec.block_size));
  }
  // One that is read-only has no watch and stays as it was opened.
  if (new_size == size_bytes() || (new_size == 0 && info_.read_only)) return {};
  if (info_.read_only) return fail(spec.path, "is read-only", "open it writable to grow it");
  return wait_for_ceph<void>(image_->group(), spec.path, limits::kImageOpens,
                             [image = image_, new_size] { return image->grow(new_size); });
}

Result<void> RbdBackend::check() {
  if (closed_) return {};
  return image_->check();
}

}  // namespace sluice::rbd
