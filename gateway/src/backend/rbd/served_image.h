// The image behind a LUN, and how it comes, is lost to a fence, comes back and goes. Tasks of the
// workers share it with the backend and may outlive that. In a cluster it is opened by a client
// that it is given, and never comes back: its volume's next epoch opens another.
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
    std::string group;           // of workers
    Takeover takeover;
    // Fenced: once, by any thread, which must not wait. The client itself is the giver's to watch.
    std::function<void(bool blocklisted)> lost;
    std::function<void()> closed;  // by a worker, once shut() has closed it
  };

  explicit ServedImage(const backend::Spec& spec)
      : spec_(spec), group_(group_of(spec.ceph, ImageName::parse(spec.path).pool)) {}
  ServedImage(const backend::Spec& spec, Given given)
      : spec_(spec), given_(std::make_unique<Given>(std::move(given))), group_(given_->group) {}

  // --- workers: these wait for Ceph
  Result<void> open();
  Result<void> grow(uint64_t bytes);  // 0: to what the image has by now
  void come_back();                   // as a new client, with a new lock
  void shut();                        // for good; nothing is in flight. Again: waits for the first
  // Error: it is fenced or closed. It closes only after `work`, which must therefore be short.
  Result<void> use(const std::function<Result<void>(Image&)>& work);

  // --- any thread: these don't
  // Requests look at the current slot without a lock. One that looks at a slot that is out of use
  // finds the memory still there: slots are few and stay.
  struct Slot {
    std::unique_ptr<Image> image;
    std::atomic<uint32_t> users = 0;      // inside a call of librbd with it
    std::atomic<uint32_t> in_flight = 0;  // requests that librbd hasn't ended
  };
  // For calls of librbd until leave(). Null: there is no image, it is fenced or closed. A request
  // may outlive leave(): librbd ends those it has when the image closes.
  Slot* enter();
  static void leave(Slot& slot);
  // `blocklisted`: the client is lost, not only the image's lock.
  void fence(bool blocklisted);
  bool fenced() const { return fenced_.load(std::memory_order_acquire); }
  uint64_t size() const { return size_.load(std::memory_order_acquire); }
  const backend::Spec& spec() const { return spec_; }
  const std::string& group() const { return group_; }  // of workers
  // What keeps it from being served; a fenced one begins to come back, if Spec::comes_back.
  Result<void> check();
  // From now on open() of the same image, in this process, waits until shut() ended.
  void begin_closing();

 private:
  Result<std::unique_ptr<Image>> open_image();
  Result<std::shared_ptr<Pool>> find_pool();
  Result<void> wait_for_former();  // that is on its way out, if there is one
  Result<void> adopt_size(Image& image);
  void serve(std::unique_ptr<Image> image);
  void take_away();
  void follow_size();
  Error shrank(uint64_t size) const;
  std::string problem() const;

  const backend::Spec spec_;
  const std::unique_ptr<Given> given_;  // null: no cluster
  const std::string group_;
  std::string cluster_;  // fsid, once open() has asked
  std::atomic<Slot*> current_ = nullptr;
  std::atomic<uint64_t> size_ = 0;   // bytes; never less than hosts were told
  std::atomic<uint64_t> found_ = 0;  // bytes the image has
  std::atomic<bool> fenced_ = false;
  std::atomic<bool> blocklisted_ = false;
  std::atomic<bool> coming_back_ = false;
  std::atomic<bool> following_ = false;
  std::mutex life_;  // held while the image is exchanged
  bool closed_ = false;
  std::vector<std::unique_ptr<Slot>> slots_;
  mutable std::mutex problem_mutex_;
  std::string problem_;
};

}  // namespace sluice::rbd
