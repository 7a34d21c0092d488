// backend::open() of the program faulty-gateway, which tests/robustness uses. The linker replaces
// the calls of the other function (ld(1), --wrap), so the gateway that ships knows no faults.
//
// SLUICE_BACKEND_FAULTS=SUFFIX=FAULTS injects faults (backend/faulty/faulty.h) into each backend
// whose path ends in the suffix: `lun1.img=delay-every=90;delay-ms=2600`.
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>

#include "backend/backend.h"
#include "faulty/faulty.h"

namespace sluice::backend {

Result<std::unique_ptr<Backend>> real_open(const Spec& spec) __asm__(
    "__real__ZN6sluice7backend4openERKNS0_4SpecE");
Result<std::unique_ptr<Backend>> faulty_open(const Spec& spec) __asm__(
    "__wrap__ZN6sluice7backend4openERKNS0_4SpecE");

Result<std::unique_ptr<Backend>> faulty_open(const Spec& spec) {
  Result<std::unique_ptr<Backend>> opened = real_open(spec);
  const char* text = std::getenv("SLUICE_BACKEND_FAULTS");
  if (!opened || text == nullptr) return opened;
  const std::string_view wanted(text);
  const size_t end = wanted.find('=');
  if (end == std::string_view::npos) return Error{"SLUICE_BACKEND_FAULTS is not SUFFIX=FAULTS"};
  if (!spec.path.ends_with(wanted.substr(0, end))) return opened;
  return with_faults(std::move(*opened), wanted.substr(end + 1), spec.block_size);
}

}  // namespace sluice::backend
