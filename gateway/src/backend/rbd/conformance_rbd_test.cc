// The suite of backend/conformance.h over images of a real Ceph.
#include <memory>

#include "backend/conformance.h"
#include "rbd/ceph_fixture.h"
#include "rbd/rbd_backend.h"

namespace sluice::backend {
namespace {

struct ImageSubject : Subject {
  explicit ImageSubject(uint32_t block_size) {
    rbd::install();
    spec = ceph.spec();
    spec.block_size = block_size;
    locked = true;
  }
  rbd::CephNamespace ceph;
};

ConformanceCase image(const std::string& name, uint32_t block_size, const std::string& fault) {
  return {name, [=]() -> std::unique_ptr<Subject> {
            auto subject = std::make_unique<ImageSubject>(block_size);
            subject->faults = fault;
            return subject;
          }};
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Rbd, Conformance,
                         testing::Values(image("plain", 512, ""), image("plain_4096", 4096, ""),
                                         image("delayed_and_short", 512,
                                               "short-every=2;delay-every=3;delay-ms=1")),
                         case_name);

}  // namespace sluice::backend
