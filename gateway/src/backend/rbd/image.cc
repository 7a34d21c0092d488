#include "rbd/image.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "backend/failure.h"
#include "backend/size_text.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/safety_mutation.h"
#include "rbd/ceph_error.h"
#include "rbd/ceph_executor.h"
#include "rbd/holder.h"

namespace sluice::rbd {
namespace {

using backend::fail;
using backend::Io;
using backend::Op;

constexpr const char* kHolderKey = "sluice.holder";
constexpr size_t kHolderBytes = 1024;
constexpr int kMostOptions = 512;

struct Unwanted {
  uint64_t feature;
  const char* name;
};
// In the order in which they can be disabled.
constexpr std::array<Unwanted, 3> kUnwanted = {{{RBD_FEATURE_JOURNALING, "journaling"},
                                                {RBD_FEATURE_FAST_DIFF, "fast-diff"},
                                                {RBD_FEATURE_OBJECT_MAP, "object-map"}}};

// Called on a librbd thread.
void completed(rbd_completion_t completion, void* argument) {
  Io& io = *static_cast<Io*>(argument);
  const auto result = static_cast<int32_t>(rbd_aio_get_return_value(completion));
  rbd_aio_release(completion);
  io.priv.aio->complete(io.aio, result);
}

struct FenceCheck {
  std::shared_ptr<Pool> pool;  // also keeps its client alive until the answer
  Io* io = nullptr;
  uint64_t size = 0;
  time_t time = 0;
};

// Called on a librados thread, which can't end its own client. "No such object" is a valid answer.
void fence_checked(rados_completion_t completion, void* argument) {
  const std::unique_ptr<FenceCheck> check(static_cast<FenceCheck*>(argument));
  const int r = rados_aio_get_return_value(completion);
  const std::string client = check->pool->client().addresses();
  ceph_executor().post({client}, [pool = std::move(check->pool)] {});
  Io& io = *check->io;
  io.priv.aio->complete(io.aio, r == -ENOENT ? 0 : r);
}

std::optional<Holder> holder_of(rbd_image_t image) {
  std::string text(kHolderBytes, '\0');
  size_t size = text.size();
  if (rbd_metadata_get(image, kHolderKey, text.data(), &size) < 0) return std::nullopt;
  return Holder::parse(text.substr(0, text.find('\0')));
}

Error cannot_open(const std::string& name, int r) {
  if (r == -ENOENT) return fail(name, "there is no such image", "create it with `rbd create`");
  if (r == -EACCES || r == -EPERM) {
    return fail(name, "may not be opened by this user",
                "it needs `profile rbd` for monitors and for the OSDs of the pool");
  }
  return fail(name, "can't be opened: " + ceph_error(r), "look at `rbd info " + name + "`");
}

}  // namespace

Result<std::unique_ptr<Image>> Image::open(std::shared_ptr<Pool> pool, const std::string& image,
                                           Access access, const Takeover& takeover) {
  const std::string name = pool->name() + "/" + image;
  const rados_ioctx_t context = pool->context();
  std::unique_ptr<Image> opened(new Image(std::move(pool), name, access));
  const int r = access == Access::kReadOnly
                    ? rbd_open_read_only(context, image.c_str(), &opened->image_, nullptr)
                    : rbd_open(context, image.c_str(), &opened->image_, nullptr);
  if (r < 0) {
    opened->image_ = nullptr;
    return cannot_open(name, r);
  }
  opened->pool_->client().opened();
  std::array<char, 256> id{};
  if (rbd_get_id(opened->image_, id.data(), id.size()) == 0) {
    opened->id_ = id.data();
    opened->header_ = "rbd_header." + opened->id_;
  }
  for (auto step : {&Image::check, &Image::check_cache}) {
    const Result<void> fine = ((*opened).*step)();
    if (!fine) return Error{fine.error()};
  }
  if (access == Access::kOwned) {
    const Result<void> locked = opened->lock(takeover);
    if (!locked) return Error{locked.error()};
  }
  return opened;
}

// A fenced image closes immediately; otherwise Ceph is notified that lock and watch are released.
Image::~Image() {
  if (!image_) return;
  pool_->client().closed();
  if (watched_) rbd_update_unwatch(image_, watch_);
  const int r = rbd_close(image_);
  if (r < 0 && r != -ESHUTDOWN) {
    log::warning("image closed with an error", {{"image", name_}, {"error", ceph_error(r)}});
  }
}

Result<void> Image::check() const {
  uint64_t features = 0;
  const int r = rbd_get_features(image_, &features);
  if (r < 0) return cannot_open(name_, r);
  std::string found;
  for (const Unwanted& unwanted : kUnwanted) {
    if (features & unwanted.feature)
      found += (found.empty() ? "" : " ") + std::string(unwanted.name);
  }
  if (!found.empty()) {
    return fail(name_, "has " + found + ", by which a cut-off gateway would answer from memory",
                "rbd feature disable " + name_ + " " + found);
  }
  if (access_ == Access::kOwned && !(features & RBD_FEATURE_EXCLUSIVE_LOCK)) {
    return fail(name_, "lacks exclusive-lock, so another could write it meanwhile",
                "rbd feature enable " + name_ + " exclusive-lock");
  }
  return {};
}

// Metadata of image and pool (conf_*) override the gateway's settings.
Result<void> Image::check_cache() const {
  if (mutation_disables(Guard::kRbdCache)) return {};
  std::vector<rbd_config_option_t> options(kMostOptions);
  int count = kMostOptions;
  const int r = rbd_config_image_list(image_, options.data(), &count);
  if (r < 0) return fail(name_, "can't tell its configuration: " + ceph_error(r), "");
  std::string value, from;
  for (int i = 0; i < count; ++i) {
    const rbd_config_option_t& option = options[static_cast<size_t>(i)];
    if (std::string_view(option.name) != "rbd_cache") continue;
    value = option.value;
    const bool pools = option.source == RBD_CONFIG_SOURCE_POOL;
    from = pools ? "pool rm " + name_.substr(0, name_.find('/')) : "image rm " + name_;
  }
  rbd_config_image_list_cleanup(options.data(), count);
  if (value == "false") return {};
  return fail(name_, "has rbd_cache turned on, which acknowledges writes that a crash would lose",
              "rbd config " + from + " rbd_cache");
}

std::string Image::lock_owner() const {
  rbd_lock_mode_t mode{};
  std::array<char*, 8> owners{};
  size_t count = owners.size();
  if (rbd_lock_get_owners(image_, &mode, owners.data(), &count) < 0 || count == 0) return "";
  std::string first = owners[0];
  rbd_lock_get_owners_cleanup(owners.data(), count);
  return first;
}

Error Image::in_use() const {
  const std::string owner = lock_owner();
  const std::optional<Holder> holder = holder_of(image_);
  const std::string who = holder && holder->client == owner ? holder->describe() : "a client";
  return fail(name_, "is in use by " + who + " (" + owner + ")",
              "stop that one, or name another image");
}

// Returns when the lock is free, or its holder was just blocklisted: a dead holder's write may
// still be on its way (DESIGN R2). rbd_lock_acquire() alone would break a lock without that.
Result<void> Image::wait_for_lock(const Takeover& takeover) {
  using Clock = std::chrono::steady_clock;
  RadosClient& client = pool_->client();
  const auto start = Clock::now();
  for (;;) {
    const std::string owner = lock_owner();
    if (owner.empty() || owner == client.addresses()) return {};
    // With that map the disks drop its watch, and then librbd considers its lock as stale.
    if (std::ranges::count(takeover.fenced, owner) != 0) {
      if (mutation_disables(Guard::kBlocklist)) {
        rbd_lock_break(image_, RBD_LOCK_MODE_EXCLUSIVE, owner.c_str());
      }
      Result<void> known = client.wait_for_latest_map();
      if (known) wait_until_unwatched(owner);
      return known;
    }
    const std::optional<Holder> holder = holder_of(image_);
    const bool known = holder && holder->client == owner;
    const bool ours = known && holder->is_self();
    const bool gone = known && (ours ? !RadosClient::lives_here(owner) : holder->is_dead());
    const Result<std::vector<std::string>> watchers = this->watchers();
    const bool watched = !watchers || std::ranges::count(watchers.value(), owner) != 0;
    if (gone || !watched) {
      log::warning("who had the image is gone, and is fenced",
                   {{"image", name_}, {"client", owner}});
      Result<void> fenced = client.blocklist(owner);
      if (fenced) wait_until_unwatched(owner);
      return fenced;
    }
    const Nanos patience = known && holder->is_alive() ? takeover.of_living : takeover.of_silent;
    if (Clock::now() - start >= std::chrono::nanoseconds(patience)) return in_use();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

// Its disk drops the watch of a client that is blocklisted a moment after it has the map. Where it
// is still there librbd takes the client for alive, asks it for the lock and waits 5 s for an
// answer.
void Image::wait_until_unwatched(const std::string& client) const {
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::nanoseconds(limits::kImageHandover);
  while (std::chrono::steady_clock::now() < end) {
    const Result<std::vector<std::string>> found = watchers();
    if (!found || std::ranges::count(found.value(), client) == 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

Result<void> Image::lock(const Takeover& takeover) {
  if (mutation_disables(Guard::kRbdLockMode)) return pool_->client().wait_for_latest_map();
  Result<void> free = wait_for_lock(takeover);
  if (!free) return free;
  int r = rbd_lock_acquire(image_, RBD_LOCK_MODE_EXCLUSIVE);
  if (r == -EROFS || r == -EBUSY) return in_use();
  if (r < 0) {
    return fail(name_, "can't be locked: " + ceph_error(r), "look at `rbd lock ls " + name_ + "`");
  }
  if (takeover.signs) {
    const std::string self = Holder::self(pool_->client().addresses()).text();
    r = rbd_metadata_set(image_, kHolderKey, self.c_str());
    if (r < 0)
      return fail(name_, "can't be written: " + ceph_error(r), "check the pool and the rights");
  }
  // Requests of this client carry the map that fences the previous holder.
  return pool_->client().wait_for_latest_map();
}

Result<std::vector<std::string>> Image::watchers() const {
  std::vector<rbd_image_watcher_t> found(64);
  size_t count = found.size();
  int r = rbd_watchers_list(image_, found.data(), &count);
  if (r == -ERANGE) {  // `count` says how many there are
    found.resize(count);
    r = rbd_watchers_list(image_, found.data(), &count);
  }
  if (r < 0) return fail(name_, "can't tell who has it open: " + ceph_error(r), "");
  std::vector<std::string> clients;
  for (size_t i = 0; i < count; ++i) clients.emplace_back(found[i].addr);
  rbd_watchers_list_cleanup(found.data(), count);
  return clients;
}

Result<uint64_t> Image::size() const {
  uint64_t bytes = 0;
  const int r = rbd_get_size(image_, &bytes);
  if (r < 0) return fail(name_, "can't tell its size: " + ceph_error(r), "");
  return bytes;
}

Result<ImageIdentity> Image::identity() const {
  const Result<uint64_t> bytes = size();
  if (!bytes) return Error{bytes.error()};
  return ImageIdentity{id_, bytes.value()};
}

Result<void> Image::grow(uint64_t bytes) {
  const auto progress = [](uint64_t, uint64_t, void*) { return 0; };
  const int r = rbd_resize2(image_, bytes, false, progress, nullptr);
  if (r == 0) return {};
  return fail(name_, "can't grow to " + backend::format_size(bytes) + ": " + ceph_error(r),
              r == -EROFS ? "another client holds its lock" : "look at `rbd info " + name_ + "`");
}

Result<void> Image::watch(std::function<void()> changed) {
  changed_ = std::move(changed);
  const int r = rbd_update_watch(image_, &watch_, &Image::on_changed, this);
  if (r < 0) return fail(name_, "can't be watched: " + ceph_error(r), "");
  watched_ = true;
  return {};
}

// Queries the disk that has the header. A gateway that takes over takes the lock on that disk
// before it serves, with a map that fences this client: from then on the disk answers no request of
// this client.
int Image::check_fence(Io& io) {
  auto check = std::make_unique<FenceCheck>(FenceCheck{pool_, &io});
  rados_completion_t completion = nullptr;
  int r = rados_aio_create_completion2(check.get(), fence_checked, &completion);
  if (r < 0) return r;
  FenceCheck* const submitted = check.release();
  r = rados_aio_stat(pool_->context(), header_.c_str(), completion, &submitted->size,
                     &submitted->time);
  rados_aio_release(completion);
  if (r < 0) check.reset(submitted);
  return r;
}

int Image::start(Io& io) {
  if (io.op == Op::kCheckFence) return check_fence(io);
  rbd_completion_t completion = nullptr;
  int r = rbd_aio_create_completion(&io, completed, &completion);
  if (r < 0) return r;
  const auto vectors = static_cast<int>(io.iovcnt);
  switch (io.op) {
    case Op::kRead:
      r = rbd_aio_readv(image_, io.iov, vectors, io.offset, completion);
      break;
    case Op::kWrite:
      r = rbd_aio_writev(image_, io.iov, vectors, io.offset, completion);
      break;
    case Op::kFlush:
      r = rbd_aio_flush(image_, completion);
      break;
    case Op::kDiscard:
    case Op::kWriteZeroes: {
      // rbd_aio_discard leaves what doesn't fill 4 KiB as it was; this deallocates what it can and
      // zeroes the rest.
      const bool thick = io.op == Op::kWriteZeroes && !(io.flags & backend::kIoMayUnmap);
      r = rbd_aio_write_zeroes(image_, io.offset, io.length, completion,
                               thick ? RBD_WRITE_ZEROES_FLAG_THICK_PROVISION : 0, 0);
      break;
    }
    case Op::kCheckFence:
    case Op::kCdb:
      break;
  }
  if (r < 0) rbd_aio_release(completion);
  return r;
}

}  // namespace sluice::rbd
