// The image behind a LUN: opening, loss by fencing, reopening and closing. Tasks of the executor
// share it with the backend and may outlive the backend. In a cluster the caller supplies the
// client, and the image never reopens: the next epoch of its volume opens another.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "rbd/image.h"

namespace sluice::rbd {

class ServedImage : public std::enable_shared_from_this<ServedImage> {
 public:
  struct Given {
    std::shared_ptr<Pool> pool;  // of the client that the control plane has recorded
    std::string group;           // of ceph_executor()
    Takeover takeover;
    // Called once when it is fenced, on any thread; must not block. The caller watches the client
    // itself.
    std::function<void(bool blocklisted)> lost;
    std::function<void()> closed;  // called by a worker after shut() has closed the image
  };

  explicit ServedImage(const backend::Spec& spec)
      : spec_(spec), group_(group_of(spec.ceph, ImageName::parse(spec.path).pool)) {}
  ServedImage(const backend::Spec& spec, Given given)
      : spec_(spec), given_(std::make_unique<Given>(std::move(given))), group_(given_->group) {}

  // --- the executor's threads only: these wait for Ceph
  Result<void> open();
  Result<void> grow(uint64_t bytes);  // 0: adopts the size that the image has now
  void come_back();                   // with a new client and a new lock
  // permanently; nothing is in flight. A second call waits for the first
  void shut();
  // Error: it is fenced or closed. The image closes only after `work`, so `work` must be short.
  Result<void> use(const std::function<Result<void>(Image&)>& work);

  // --- any thread: these do not wait
  // Requests access the current slot without a lock. Slots are never freed, so a request that sees
  // an old slot accesses valid memory.
  struct Slot {
    std::unique_ptr<Image> image;
    std::atomic<uint32_t> users = 0;      // threads inside a librbd call with it
    std::atomic<uint32_t> in_flight = 0;  // requests that librbd has not completed
  };
  // Permits librbd calls until leave(). Null: there is no image, it is fenced or closed. A request
  // may outlive leave(): librbd completes pending requests when the image closes.
  Slot* enter();
  static void leave(Slot& slot);
  // `blocklisted`: the client is fenced, not only the image's lock lost.
  void fence(bool blocklisted);
  bool fenced() const { return fenced_.load(std::memory_order_acquire); }
  uint64_t size() const { return size_.load(std::memory_order_acquire); }
  const backend::Spec& spec() const { return spec_; }
  const std::string& group() const { return group_; }  // of ceph_executor()
  // Why it can't be served. A fenced image begins to reopen if Spec::reopen_after_fence is set.
  Result<void> check();
  // From now on open() of the same image in this process waits until shut() has ended.
  void begin_closing();

 private:
  Result<std::unique_ptr<Image>> open_image();
  Result<std::shared_ptr<Pool>> find_pool();
  Result<void> wait_for_former();  // the image of the same name that is being closed, if any
  Result<void> adopt_size(Image& image);
  void serve(std::unique_ptr<Image> image);
  void take_away();
  void follow_size();
  Error shrank(uint64_t size) const;
  std::string problem() const;

  const backend::Spec spec_;
  const std::unique_ptr<Given> given_;  // null: without a control plane
  const std::string group_;
  std::string cluster_;  // fsid, set by open()
  std::atomic<Slot*> current_ = nullptr;
  std::atomic<uint64_t> size_ = 0;   // bytes; never less than hosts have seen
  std::atomic<uint64_t> found_ = 0;  // size of the image in bytes
  std::atomic<bool> fenced_ = false;
  std::atomic<bool> blocklisted_ = false;
  std::atomic<bool> coming_back_ = false;
  std::atomic<bool> following_ = false;
  std::mutex life_;  // held while the image is replaced
  bool closed_ = false;
  std::vector<std::unique_ptr<Slot>> slots_;
  mutable std::mutex problem_mutex_;
  std::string problem_;
};

}  // namespace sluice::rbd
