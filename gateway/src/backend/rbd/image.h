// An open image of Ceph.
//
// Threads: open(), size(), grow() and the destructor wait for Ceph: workers only. start() doesn't
// wait.
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

// What tells an image from another one of the same name.
struct ImageIdentity {
  std::string id;     // unique in its pool; empty: format 1
  uint64_t size = 0;  // bytes
};

// From whom an image's lock may be taken, beyond who is gone.
struct Takeover {
  // Clients that are blocklisted by now: their lock is taken at once, with no other blocklisting.
  std::vector<std::string> fenced = {};
  Nanos of_living = 0;                                   // waited for who is there, then refused
  Nanos of_silent = limits::kImageOpens - 10 * kSecond;  // for Ceph to give up who may be gone
  // The image tells whose it is (Holder), for who is refused it or finds it left behind. A control
  // plane knows that without.
  bool signs = true;
};

class Image {
 public:
  enum class Access : uint8_t {
    kOwned,     // with the exclusive lock, held until the image closes: never handed over on demand
    kShared,    // to look, or to manage an image that nobody serves: librbd locks as it needs
    kReadOnly,  // no lock, no watch; as large as it was when it was opened
  };
  // Checks that nothing answers from memory: librbd's cache is off whatever image and pool say, and
  // there is neither object map nor fast-diff nor journal (DESIGN R2). Takes the lock,
  // also from one who is gone: at once if it was a process of this node or a fenced client of this
  // process, else when Ceph has given it up (30 s). It is blocklisted first, for good.
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
  // Address of the client that has the exclusive lock; empty: nobody.
  std::string lock_owner() const;
  // Addresses of the clients that have it open for writing, this one among them.
  Result<std::vector<std::string>> watchers() const;
  Result<void> grow(uint64_t bytes);
  // `changed` is called by a thread of librbd when size or snapshots may have changed; it must not
  // call librbd. Once, before the first request.
  Result<void> watch(std::function<void()> changed);

  // Begins a request, kVouch among them; its end calls `io.priv.aio->complete(io.aio, ...)` with
  // bytes, 0 or a negative errno. Returns 0, or a negative errno where it never began.
  int start(backend::Io& io);

 private:
  Image(std::shared_ptr<Pool> pool, std::string name, Access access)
      : pool_(std::move(pool)), name_(std::move(name)), access_(access) {}
  Result<void> check() const;
  Result<void> check_cache() const;
  Result<void> lock(const Takeover& takeover);
  Result<void> wait_for_turn(const Takeover& takeover);
  void wait_until_unwatched(const std::string& client) const;
  Error in_use() const;
  int vouch(backend::Io& io);
  static void on_changed(void* image) { static_cast<Image*>(image)->changed_(); }

  const std::shared_ptr<Pool> pool_;
  const std::string name_;
  const Access access_;
  rbd_image_t image_ = nullptr;
  std::string id_;
  std::string header_ = "rbd_directory";  // one that is too old to have an id: any object will do
  std::function<void()> changed_;
  uint64_t watch_ = 0;
  bool watched_ = false;
};

}  // namespace sluice::rbd
