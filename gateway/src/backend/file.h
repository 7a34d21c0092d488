// A LUN in a regular file, through the page cache (io=buffered) or past it (io=direct).
#pragma once

#include "backend/descriptor.h"

namespace sluice::backend {

class File final : public Descriptor {
 public:
  // A missing file is created sparse (Spec::create), one smaller than Spec::size grows to it: a
  // size in the configuration is the desired state. A larger one is refused.
  static Result<std::unique_ptr<Backend>> open(const Spec& spec);

  Result<Extent> allocation(uint64_t offset, uint64_t limit) const override;
  uint64_t free_bytes() const override;
  Result<void> resize(uint64_t new_size) override;
  Result<void> check() override;
  std::string misplaced() const override;

 private:
  File(const Spec& spec, Setup setup) : Descriptor(spec, std::move(setup)) {}
  Error cut_short_error() const;
};

}  // namespace sluice::backend
