#include "control_rbd/rbd_storage.h"

#include <utility>

#include "backend/failure.h"
#include "base/boot_clock.h"
#include "base/limits.h"
#include "control_rbd/image_object.h"
#include "rbd/ceph_executor.h"
#include "rbd/rbd_backend.h"

namespace sluice::control {
namespace {

constexpr const char* kTooMuch = "too much waits for Ceph already; try again";

}  // namespace

RbdStorage::RbdStorage(std::shared_ptr<PoolClient> client, std::shared_ptr<OpenImages> images,
                       const wire::DesiredVolume& volume, std::function<void()> wake)
    : pool_client_(std::move(client)),
      images_(std::move(images)),
      volume_(volume.uid()),
      location_(volume.location()),
      wake_(std::move(wake)) {}

void RbdStorage::wake() { pool_client_->callbacks().run(wake_); }

// --- opening

VolumeStorage::Opened RbdStorage::open(const wire::DesiredVolume& volume) {
  const std::lock_guard lock(mutex_);
  if (opening_) return {.pending = true};
  if (opened_ && opened_->problem.empty()) {
    opened_.reset();
    return {.backend = std::make_unique<rbd::RbdBackend>(image_)};
  }
  // What an earlier order failed with, this one may know better: it names other fenced clients.
  if (opened_ && opened_->order == volume.order()) {
    return {.problem = std::exchange(opened_, std::nullopt)->problem};
  }
  opened_.reset();
  std::string problem;
  Nanos since = 0;
  std::shared_ptr<rbd::Pool> pool = pool_client_->recorded(&problem, &since);
  if (!pool) {
    // Without a stream nothing is recorded: that is waited for. A cluster that can't be reached
    // from here is another gateway's to serve.
    if (waits_since_ == 0) waits_since_ = boot_clock_now();
    const Nanos begin = std::max(since, waits_since_);
    if (!problem.empty() && boot_clock_now() - begin >= limits::kLockGivesUp) {
      return {.problem = problem};
    }
    return {.pending = true};
  }
  opening_ = rbd::ceph_executor().try_post(
      {pool_client_->group()},
      [self = shared_from_this(), pool, volume] { self->open_now(pool, volume); });
  if (!opening_) return {.problem = kTooMuch};
  return {.pending = true};
}

void RbdStorage::open_now(const std::shared_ptr<rbd::Pool>& pool,
                          const wire::DesiredVolume& volume) {
  const Result<void> done = open_image(pool, volume);
  std::shared_ptr<rbd::ServedImage> unwanted;
  {
    const std::lock_guard lock(mutex_);
    opened_ = Opening{volume.order(), done ? std::string() : done.error()};
    if (closing_ || !done) unwanted = image_;
  }
  if (unwanted) {
    unwanted->begin_closing();
    unwanted->shut();  // image_ goes by closed()
  }
  {
    const std::lock_guard lock(mutex_);
    opening_ = false;
  }
  wake();
}

Result<void> RbdStorage::open_image(const std::shared_ptr<rbd::Pool>& pool,
                                    const wire::DesiredVolume& volume) {
  backend::Spec spec;
  spec.kind = "rbd";
  spec.path = pool_client_->name() + '/' + location_;
  spec.size = static_cast<uint64_t>(volume.size_bytes());
  spec.block_size = static_cast<uint32_t>(volume.block_size());
  spec.reopen_after_fence = false;
  rbd::ServedImage::Given given;
  const Result<PoolClient::Storage> storage = pool_client_->identify(pool->client());
  if (!storage) return Error{storage.error()};
  if (storage.value().identified.foreign) return Error{storage.value().identified.doubt};
  given.pool = storage.value().pool;
  given.group = pool_client_->group();
  given.takeover.fenced.assign(volume.fenced_clients().begin(), volume.fenced_clients().end());
  given.takeover.of_living = given.takeover.of_silent = limits::kImageHandover;
  given.takeover.signs = false;
  given.lost = [weak = weak_from_this()](bool blocklisted) {
    if (const auto self = weak.lock()) self->image_lost(blocklisted);
  };
  given.closed = [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->closed();
  };
  auto image = std::make_shared<rbd::ServedImage>(spec, std::move(given));
  Result<void> opened = image->open();
  if (!opened) return opened;
  {
    const std::lock_guard lock(mutex_);
    image_ = image;
    client_ = pool->client().shared_from_this();
  }
  if (pool->client().fenced()) image->fence(true);  // it may have missed that
  // Read by the client that holds the lock, and after it has it.
  auto records = pool->client().again(*storage.value().pool);
  if (!records) return Error{records.error()};
  const ImageObjects images{records.value(), storage.value().adoptions()};
  Result<void> verified = image->use([&](rbd::Image& served) -> Result<void> {
    const Result<rbd::ImageIdentity> present = served.identity();
    if (!present) return Error{present.error()};
    return verify_image(images, location_, present.value());
  });
  if (!verified) return verified;
  auto object = std::make_shared<RecordObject>(std::move(records).value(), volume_);
  Result<std::optional<Record>> record = object->read();
  if (!record) return Error{record.error()};
  const std::lock_guard lock(mutex_);
  object_ = std::move(object);
  record_ = std::move(record).value();
  return {};
}

Result<std::optional<Record>> RbdStorage::record() {
  const std::lock_guard lock(mutex_);
  return record_;
}

Result<void> RbdStorage::kill(const Record& /*record*/) {
  return Error{"an image's holder is fenced by the control plane, not killed"};
}

// --- losing, closing

void RbdStorage::image_lost(bool blocklisted) {
  std::shared_ptr<rbd::RadosClient> client;
  {
    const std::lock_guard lock(mutex_);
    client = client_;
    lost_ = blocklisted
                ? "its client of Ceph is blocklisted, as for a volume that has another owner"
                : "the image's lock was taken, or not kept while Ceph was out of reach";
  }
  // One image has found out what is true of all. This may be a reactor.
  if (blocklisted && client) {
    const std::string address = client->addresses();
    rbd::ceph_executor().post({address}, [client = std::move(client)] { client->note_fenced(); });
  }
  wake();
}

std::string RbdStorage::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

void RbdStorage::fence(const rbd::RadosClient& client) {
  std::shared_ptr<rbd::ServedImage> image;
  {
    const std::lock_guard lock(mutex_);
    if (client_.get() == &client) image = image_;
  }
  if (image) image->fence(true);
}

std::shared_ptr<rbd::ServedImage> RbdStorage::image() const {
  const std::lock_guard lock(mutex_);
  return image_;
}

void RbdStorage::closed() {
  {
    const std::lock_guard lock(mutex_);
    image_.reset();
    client_.reset();
  }
  wake();
}

void RbdStorage::begin_close() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    // Opened, but never fetched: a backend closes it as it goes.
    if (!opening_ && opened_ && opened_->problem.empty()) {
      const rbd::RbdBackend unwanted(image_);
    }
    if (!opening_) opened_.reset();
  }
  images_->stop_uses(location_);  // later uses find that the image is leaving
}

bool RbdStorage::leaving() const {
  const std::lock_guard lock(mutex_);
  return closing_ && !is_closed_locked();
}

bool RbdStorage::is_closed() const {
  if (images_->is_used(location_)) return false;
  const std::lock_guard lock(mutex_);
  return is_closed_locked();
}

bool RbdStorage::is_closed_locked() const { return !opening_ && !image_ && !writing_ && !growing_; }

// --- growing

Result<VolumeStorage::Growth> RbdStorage::grow(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (growing_) return Growth::kPending;
  const std::optional<Result<void>> grown = std::exchange(grown_, std::nullopt);
  if (!image_ || image_->size() >= bytes) return Growth::kDone;
  if (grown && !*grown) return Error{grown->error()};
  const auto work = [self = shared_from_this(), image = image_, bytes] {
    // Usually a job on another gateway has already grown the image, and the watch has not reported
    // it yet.
    Result<void> done = image->grow(0);
    if (done && image->size() < bytes) done = image->grow(bytes);
    {
      const std::lock_guard guard(self->mutex_);
      self->growing_ = false;
      self->grown_ = std::move(done);
    }
    self->wake();
  };
  growing_ = rbd::ceph_executor().try_post({pool_client_->group()}, work);
  if (!growing_) return Error{kTooMuch};
  return Growth::kPending;
}

// --- the record

Result<VolumeStorage::Claim> RbdStorage::claim(const Record& record, Outlasts outlasts) {
  // Whom to ask for the lock the image says itself.
  if (outlasts == Outlasts::kProcess) return Claim::kDone;
  {
    const std::lock_guard lock(mutex_);
    if (claiming_ == record) {
      if (!claimed_) return Claim::kPending;
      const Result<void> claimed = *std::exchange(claimed_, std::nullopt);
      claiming_.reset();
      if (!claimed) return Error{claimed.error()};
      return Claim::kDone;
    }
    claiming_ = record;
    claimed_.reset();
  }
  const bool posted = post_write([self = shared_from_this(), record](RecordObject& object) {
    Result<void> done = object.claim(record);
    {
      const std::lock_guard lock(self->mutex_);
      if (self->claiming_ == record) self->claimed_ = std::move(done);
    }
    self->wake();
  });
  if (!posted) return Error{kTooMuch};
  return Claim::kPending;
}

void RbdStorage::update(const Record& record, std::function<void(Result<void>)> done) {
  const bool posted = post_write([self = shared_from_this(), record, done](RecordObject& object) {
    Result<void> updated = object.update(record);
    self->pool_client_->callbacks().run([&] { done(std::move(updated)); });
  });
  if (!posted) done(Error{kTooMuch});
}

bool RbdStorage::post_write(std::function<void(RecordObject&)> write) {
  const std::lock_guard lock(mutex_);
  if (!object_ || writes_.size() >= limits::kMaxImageUpdates) return false;
  writes_.push_back(std::move(write));
  if (writing_) return true;
  // A volume that has its lock is served before the next one is opened.
  writing_ = rbd::ceph_executor().try_post_next(
      pool_client_->group(), [self = shared_from_this()] { self->write_next(); });
  if (!writing_) writes_.pop_back();
  return writing_;
}

void RbdStorage::write_next() {
  for (;;) {
    std::function<void(RecordObject&)> write;
    {
      const std::lock_guard lock(mutex_);
      writing_ = !writes_.empty();
      if (!writing_) break;
      write = std::move(writes_.front());
      writes_.pop_front();
    }
    write(*object_);
  }
  wake();
}

}  // namespace sluice::control
