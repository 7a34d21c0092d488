// A LUN in a regular file, with the page cache (io=buffered) or direct I/O (io=direct).
#pragma once

#include "backend/descriptor.h"

namespace sluice::backend {

class File final : public Descriptor {
 public:
  // Creates a missing file as a sparse file (Spec::create). Grows a file that is smaller than
  // Spec::size, because the configured size is the desired state. A larger file is an error.
  static Result<std::unique_ptr<Backend>> open(const Spec& spec);

  bool run_query(AioOp& op, Aio& aio) override;
  Result<Extent> allocation(uint64_t offset, uint64_t limit) const override;
  uint64_t free_bytes() const override;
  Result<void> resize(uint64_t new_size) override;
  Result<void> check() override;
  std::string location_problem() const override;

 private:
  File(const Spec& spec, Setup setup) : Descriptor(spec, std::move(setup)) {}
  Error cut_short_error() const;
};

}  // namespace sluice::backend
