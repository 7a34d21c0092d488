#include "rbd/served_image.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "backend/failure.h"
#include "backend/size_text.h"
#include "base/limits.h"
#include "base/log.h"
#include "rbd/ceph_executor.h"
#include "rbd/closing_images.h"

namespace sluice::rbd {
namespace {

using backend::fail;
using backend::format_size;

}  // namespace

// The one that was given; else by a client that all images of this process share.
Result<std::shared_ptr<Pool>> ServedImage::find_pool() {
  if (given_) return given_->pool;
  const ImageName name = ImageName::parse(spec_.path);
  auto client = RadosClient::shared(spec_.ceph);
  if (!client) return fail(spec_.path, client.error(), "");
  return (*client)->pool(name.pool, name.space);
}

Result<std::unique_ptr<Image>> ServedImage::open_image() {
  auto pool = find_pool();
  if (!pool) return Error{pool.error()};
  RadosClient& client = (*pool)->client();
  const auto access = spec_.read_only ? Image::Access::kReadOnly : Image::Access::kOwned;
  auto image = Image::open(std::move(*pool), ImageName::parse(spec_.path).image, access,
                           given_ ? given_->takeover : Takeover());
  if (!image) return image;
  if (!given_) {
    client.watch_fence([weak = weak_from_this()] {
      if (auto self = weak.lock()) self->fence(true);
    });
  }
  if (spec_.read_only) return image;
  const Result<void> watched = (*image)->watch([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self || self->following_.exchange(true)) return;
    const bool posted = ceph_executor().try_post({self->group_}, [self] { self->follow_size(); });
    if (!posted) self->following_.store(false);
  });
  if (!watched) return Error{watched.error()};
  return image;
}

Error ServedImage::shrank(uint64_t size) const {
  return fail(spec_.path, "shrank from " + format_size(size_) + " to " + format_size(size),
              given_ ? "restore the image from a backup" : "grow it again");
}

// A size in the configuration is the desired state, as for files.
Result<void> ServedImage::adopt_size(Image& image) {
  Result<uint64_t> size = image.size();
  if (!size) return Error{size.error()};
  const uint64_t wanted = std::max(spec_.size, size_.load());
  // A volume never shrinks: word that it has grown may not have come yet.
  if (*size > spec_.size && spec_.size != 0 && size_ == 0 && !given_) {
    return fail(spec_.path,
                "holds " + format_size(*size) + ", more than size=" + format_size(spec_.size) +
                    ", and shrinking would lose data",
                "raise size= or leave it out");
  }
  if (*size < size_) return shrank(*size);
  if (*size < wanted && given_) {
    return fail(spec_.path,
                "is " + format_size(*size) + ", recorded are " + format_size(wanted) +
                    ": its end is missing",
                "restore the image from a backup");
  }
  if (*size < wanted) {
    if (spec_.read_only) {
      return fail(spec_.path, "is smaller than size=" + format_size(wanted),
                  "leave size= out or open it writable to grow it");
    }
    Result<void> grown = image.grow(wanted);
    if (!grown) return grown;
    size = wanted;
  }
  if (*size % spec_.block_size != 0) {
    return fail(spec_.path, std::to_string(*size) + " bytes are no whole blocks",
                "rbd resize it to a multiple of " + std::to_string(spec_.block_size) + " bytes");
  }
  if (*size < spec_.block_size) return fail(spec_.path, "is empty", "give size=");
  found_ = *size;
  size_.store(*size, std::memory_order_release);
  return {};
}

Result<void> ServedImage::wait_for_former() {
  const auto pool = find_pool();
  if (!pool) return Error{pool.error()};
  cluster_ = pool.value()->client().cluster_id();
  ClosingImages::instance().wait_for({cluster_, spec_.path}, limits::kImageOpens / 2);
  return {};
}

Result<void> ServedImage::open() {
  Result<void> waited = wait_for_former();
  if (!waited) return waited;
  const std::lock_guard lock(life_);
  auto image = open_image();
  if (!image) return Error{image.error()};
  Result<void> adopted = adopt_size(**image);
  if (!adopted) return adopted;
  serve(std::move(*image));
  return {};
}

void ServedImage::serve(std::unique_ptr<Image> image) {
  slots_.push_back(std::make_unique<Slot>());
  slots_.back()->image = std::move(image);
  current_.store(slots_.back().get());
}

ServedImage::Slot* ServedImage::enter() {
  Slot* slot = current_.load();
  if (!slot || fenced()) [[unlikely]]
    return nullptr;
  slot->users.fetch_add(1);
  if (current_.load() == slot) [[likely]]
    return slot;
  leave(*slot);
  return nullptr;
}

void ServedImage::leave(Slot& slot) {
  if (slot.users.fetch_sub(1) == 1) slot.users.notify_all();
}

// Doesn't wait for requests: librbd ends those it still has when the image closes.
void ServedImage::take_away() {
  Slot* slot = current_.exchange(nullptr);
  if (!slot) return;
  for (uint32_t n = slot->users.load(); n != 0; n = slot->users.load()) slot->users.wait(n);
  if (blocklisted_.exchange(false)) slot->image->pool().client().note_fenced();
  slot->image.reset();
}

void ServedImage::fence(bool blocklisted) {
  if (blocklisted) blocklisted_.store(true);
  if (fenced_.exchange(true, std::memory_order_acq_rel)) return;
  log::error(blocklisted
                 ? "fenced: this client of Ceph is blocklisted"
                 : "fenced: the image's lock was taken, or not kept while Ceph was out of reach",
             {{"image", spec_.path}});
  if (given_ && given_->lost) given_->lost(blocklisted);
}

void ServedImage::come_back() {
  const std::lock_guard lock(life_);
  if (!closed_) {
    take_away();
    auto image = open_image();
    Result<void> adopted = image ? adopt_size(**image) : Error{image.error()};
    {
      const std::lock_guard guard(problem_mutex_);
      problem_ = adopted ? "" : adopted.error();
    }
    if (adopted) {
      log::info("came back as a new client of Ceph",
                {{"image", spec_.path}, {"client", (*image)->pool().client().addresses()}});
      serve(std::move(*image));
      fenced_.store(false, std::memory_order_release);
    }
  }
  coming_back_.store(false);
}

void ServedImage::follow_size() {
  following_.store(false);
  Slot* slot = enter();
  if (!slot) return;
  Result<uint64_t> size = slot->image->size();
  leave(*slot);
  if (!size) return;
  found_ = *size;
  uint64_t before = size_.load();
  while (before < *size && !size_.compare_exchange_weak(before, *size)) {
  }
}

Result<void> ServedImage::use(const std::function<Result<void>(Image&)>& work) {
  Slot* slot = enter();
  if (!slot) return fail(spec_.path, "was fenced", "wait until it is back");
  Result<void> done = work(*slot->image);
  leave(*slot);
  return done;
}

Result<void> ServedImage::grow(uint64_t bytes) {
  // An image that lost its end must not hide that by a new one.
  Result<void> grown = use([bytes, this](Image& image) -> Result<void> {
    const Result<uint64_t> size = image.size();
    if (!size) return Error{size.error()};
    if (given_ && size.value() < size_) return shrank(size.value());
    return bytes <= size.value() ? Result<void>() : image.grow(bytes);
  });
  if (grown) follow_size();
  return grown;
}

std::string ServedImage::problem() const {
  const std::lock_guard lock(problem_mutex_);
  return problem_;
}

Result<void> ServedImage::check() {
  if (fenced()) {
    if (!spec_.reopen_after_fence) {
      return fail(spec_.path, "was fenced", "the control plane decides who serves it now");
    }
    if (!coming_back_.exchange(true)) {
      const auto back = [self = shared_from_this()] { self->come_back(); };
      if (!ceph_executor().try_post({group_}, back)) coming_back_.store(false);
    }
    const std::string why = problem();
    if (!why.empty()) return Error{why};
    return fail(spec_.path, "was fenced", "it comes back as a new client by itself");
  }
  if (Slot* slot = enter()) {
    Pool& pool = slot->image->pool();
    pool.client().prove(pool);
    leave(*slot);
  }
  if (found_ < size_) return shrank(found_);
  return {};
}

void ServedImage::begin_closing() { ClosingImages::instance().add({cluster_, spec_.path}); }

void ServedImage::shut() {
  std::shared_ptr<Pool> pool;  // its client may go with it, which takes a while: here
  {
    const std::lock_guard lock(life_);
    closed_ = true;
    take_away();
    if (given_) pool = std::move(given_->pool);
  }
  ClosingImages::instance().remove({cluster_, spec_.path});
  if (given_ && given_->closed) given_->closed();
}

}  // namespace sluice::rbd
