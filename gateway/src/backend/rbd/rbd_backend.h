// A LUN in an image of Ceph, held by its exclusive lock.
//
//   submit -> Image::start -> librbd ... -> a thread of librbd -> Aio::complete -> reactor -> done
//
// A fenced backend (blocklisted, or its lock was taken) answers -ESHUTDOWN from then on (DESIGN
// R4). In a gateway without a control plane (Spec::reopen_after_fence) check() then reopens the
// image with a new client and a new lock.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "backend/backend.h"
#include "rbd/served_image.h"

namespace sluice::rbd {

// Registers the kind `rbd` with backend::open().
void install();

class RbdBackend final : public backend::Backend {
 public:
  static Result<std::unique_ptr<backend::Backend>> open(const backend::Spec& spec);
  // For an image that is open.
  explicit RbdBackend(std::shared_ptr<ServedImage> image);
  ~RbdBackend() override;

  const backend::Info& info() const override { return info_; }
  uint64_t size_bytes() const override { return image_->size(); }
  bool submit(backend::Io& io, Aio& aio) override;
  void close(std::function<void()> closed) override;
  bool write_cache() const override { return false; }
  Result<void> set_write_cache(bool on) override;
  // Reports everything as allocated: that needs an object map, which is refused.
  Result<backend::Extent> allocation(uint64_t offset, uint64_t limit) const override;
  Result<void> resize(uint64_t new_size) override;
  Result<void> check() override;
  std::string hangs_with() const override { return "pool of Ceph " + image_->group(); }

 private:
  int refusal(const backend::Io& io) const;
  int64_t settle(const backend::Io& io, int32_t result) const;
  static void on_done(AioOp& op, int32_t result);

  backend::Info info_;
  const std::shared_ptr<ServedImage> image_;
  std::atomic<bool> closed_ = false;
};

}  // namespace sluice::rbd
