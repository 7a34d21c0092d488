// An open Ceph image.
//
// Threads: open(), size(), grow() and the destructor wait for Ceph, so only threads of an executor
// may call them. start() does not wait.
#pragma once

#include <rbd/librbd.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/limits.h"
#include "base/result.h"
#include "rbd/image_name.h"
#include "rbd/rados_client.h"

namespace sluice::rbd {

// Distinguishes images of the same name.
struct ImageIdentity {
  std::string id;     // unique in its pool; empty: format 1
  uint64_t size = 0;  // bytes
};

// Whose lock may be taken, in addition to dead clients'.
struct Takeover {
  // Clients that are blocklisted already: their lock is taken immediately, without another
  // blocklist entry.
  std::vector<std::string> fenced = {};
  // how long to wait for a live holder before the open is refused
  Nanos of_living = 0;
  // how long to wait for Ceph's timeout of a holder that may be dead
  Nanos of_silent = limits::kImageOpens - 10 * kSecond;
  // Store the Holder with the image, for other processes that fail to get the lock or take it over.
  // With a control plane that is unnecessary.
  bool signs = true;
};

class Image {
 public:
  enum class Access : uint8_t {
    kOwned,     // with the exclusive lock until the image closes; never released on request
    kShared,    // to query or manage an image that no gateway serves: librbd locks as necessary
    kReadOnly,  // no lock, no watch; the size is that at the open
  };
  // Checks that no answer comes from memory: librbd's cache is off regardless of the settings of
  // image and pool, and the image has no object map, fast-diff or journal (DESIGN R2). Takes the
  // lock, also from a dead holder: immediately from a process of this node or a fenced client of
  // this process, otherwise after Ceph's timeout (30 s). The previous holder is blocklisted first,
  // permanently.
  static Result<std::unique_ptr<Image>> open(std::shared_ptr<Pool> pool, const std::string& image,
                                             Access access, const Takeover& takeover = {});
  ~Image();
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;

  Pool& pool() const { return *pool_; }
  const std::string& name() const { return name_; }  // pool/image
  rbd_image_t handle() const { return image_; }

  Result<uint64_t> size() const;  // bytes
  Result<ImageIdentity> identity() const;
  // Address of the client that has the exclusive lock; empty: none.
  std::string lock_owner() const;
  // Addresses of the clients that have it open for writing, including this one.
  Result<std::vector<std::string>> watchers() const;
  Result<void> grow(uint64_t bytes);
  // A librbd thread calls `changed` when size or snapshots may have changed; it must not call
  // librbd. Call watch() once, before the first request.
  Result<void> watch(std::function<void()> changed);

  // Begins a request, including kCheckFence. Its completion calls `complete(io.aio, ...)` of
  // `io.priv.aio` with bytes, 0 or a negative errno. Returns 0, or a negative errno if the request
  // did not begin.
  int start(backend::Io& io);

 private:
  Image(std::shared_ptr<Pool> pool, std::string name, Access access)
      : pool_(std::move(pool)), name_(std::move(name)), access_(access) {}
  Result<void> check() const;
  Result<void> check_cache() const;
  Result<void> lock(const Takeover& takeover);
  Result<void> wait_for_lock(const Takeover& takeover);
  void wait_until_unwatched(const std::string& client) const;
  Error in_use() const;
  int check_fence(backend::Io& io);
  static void on_changed(void* image) { static_cast<Image*>(image)->changed_(); }

  const std::shared_ptr<Pool> pool_;
  const std::string name_;
  const Access access_;
  rbd_image_t image_ = nullptr;
  std::string id_;
  std::string header_ = "rbd_directory";  // a format 1 image has no id, and any object will do
  std::function<void()> changed_;
  uint64_t watch_ = 0;
  bool watched_ = false;
};

}  // namespace sluice::rbd
