// The test suite that every backend passes. A new backend adds this to a test file of its own:
//
//   INSTANTIATE_TEST_SUITE_P(Mine, Conformance, testing::Values(ConformanceCase{"mine", &make}),
//                            case_name);
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "backend/backend.h"
#include "backend/test_driver.h"

namespace sluice::backend {

// What a case tests, with everything that must live as long as the backend (a directory, a device).
// At least kSubjectSize bytes that were never written.
struct Subject {
  virtual ~Subject() = default;
  Spec spec;
  std::string faults;       // faulty/faulty.h
  std::string skip_reason;  // not empty: not available on this machine
  bool stores_data = true;  // false: reads return zeros whatever was written
  bool locked = false;      // a second open fails and names the first process
  bool lends = false;       // borrow() works
  bool grows = true;        // resize() needs no external help
};

inline constexpr uint64_t kSubjectSize = uint64_t{8} << 20;  // bytes

struct ConformanceCase {
  std::string name;
  std::function<std::unique_ptr<Subject>()> make;
};

inline std::string case_name(const testing::TestParamInfo<ConformanceCase>& info) {
  return info.param.name;
}
inline void PrintTo(const ConformanceCase& c, std::ostream* out) { *out << c.name; }

class Conformance : public testing::TestWithParam<ConformanceCase> {
 protected:
  void SetUp() override;
  // Closes, applies `change` and opens again.
  void reopen(const std::function<void(Spec&)>& change);

  Backend& backend() { return *backend_; }
  uint32_t block() const { return subject_->spec.block_size; }
  // The data that a read must return after `written` was written.
  Bytes expected(const Bytes& written) const {
    return subject_->stores_data ? written : Bytes(written.size());
  }

  std::unique_ptr<Subject> subject_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Driver> driver_;
};

}  // namespace sluice::backend
