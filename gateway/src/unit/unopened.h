// The stand-in for a missing backend: it has size and cache mode, and the properties that an
// earlier backend reported. It refuses every request.
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
  Result<void> check() override { return {}; }  // the owner checks the medium

 private:
  static Error not_here() {
    return Error{"the volume isn't open on this gateway; ask its owner for that"};
  }

  const Shape shape_;
  const backend::Info info_;
};

}  // namespace sluice::lun
