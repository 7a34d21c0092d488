// A memory LUN whose requests wait until the test releases them: it simulates a slow disk without
// real time.
#pragma once

#include <deque>
#include <memory>

#include "backend/backend.h"

namespace sluice::simulation {

class HeldBackend final : public backend::Backend {
 public:
  explicit HeldBackend(std::unique_ptr<Backend> inner) : inner_(std::move(inner)) {}

  // While on, requests are queued instead of executed.
  void hold(bool on) { holding_ = on; }
  size_t waiting() const { return queue_.size(); }
  // Executes the oldest queued request. False: none is queued. error: a negative errno with which
  // it fails.
  bool release_one(int error = 0);
  void release_all() {
    while (release_one()) {
    }
  }

  const backend::Info& info() const override { return inner_->info(); }
  uint64_t size_bytes() const override { return inner_->size_bytes(); }
  bool submit(backend::Io& io, Aio& aio) override;
  const uint8_t* borrow(uint64_t offset, uint64_t length) const override {
    return holding_ ? nullptr : inner_->borrow(offset, length);
  }
  bool write_cache() const override { return inner_->write_cache(); }
  Result<void> set_write_cache(bool on) override { return inner_->set_write_cache(on); }
  bool run_query(AioOp& op, Aio& aio) override { return inner_->run_query(op, aio); }
  Result<backend::Extent> allocation(uint64_t offset, uint64_t limit) const override {
    return inner_->allocation(offset, limit);
  }
  Result<void> resize(uint64_t size) override { return inner_->resize(size); }
  Result<void> check() override { return inner_->check(); }
  std::string hangs_with() const override { return inner_->hangs_with(); }

 private:
  struct Waiting {
    backend::Io* io;
    Aio* aio;
  };
  std::unique_ptr<Backend> inner_;
  bool holding_ = false;
  std::deque<Waiting> queue_;
};

}  // namespace sluice::simulation
