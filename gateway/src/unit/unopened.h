// Stands where a unit has no backend: it knows size and cache mode, and what an earlier backend
// said of the medium; it refuses every request.
#pragma once

#include <cerrno>

#include "backend/backend.h"
#include "unit/unit_identity.h"

namespace sluice::lun {

class Unopened final : public backend::Backend {
 public:
  Unopened(Shape shape, backend::Info info) : shape_(shape), info_(info) {}

  const backend::Info& info() const override { return info_; }
  uint64_t size_bytes() const override { return shape_.size_bytes; }
  bool submit(backend::Io& io, Aio&) override {
    io.result = -ENODEV;
    return true;
  }
  bool write_cache() const override { return shape_.write_cache; }
  Result<void> set_write_cache(bool) override { return not_here(); }
  Result<backend::Extent> allocation(uint64_t, uint64_t) const override { return not_here(); }
  Result<void> resize(uint64_t) override { return not_here(); }
  Result<void> check() override { return {}; }  // its owner looks after the medium

 private:
  static Error not_here() {
    return Error{"the volume isn't open on this gateway; ask its owner for that"};
  }

  const Shape shape_;
  const backend::Info info_;
};

}  // namespace sluice::lun
