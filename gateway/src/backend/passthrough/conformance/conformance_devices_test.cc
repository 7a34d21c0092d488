// The suite of backend/conformance.h over devices of exactly kSubjectSize, which environment
// variables name: SLUICE_SG_512=/dev/sg0, SLUICE_SG_4096, SLUICE_NVME_512=/dev/ng0n1,
// SLUICE_NVME_4096. Their contents are lost. For each the block device of the same medium, by which
// it is made blank, is named too: SLUICE_SG_512_BLOCK=/dev/sda.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "backend/conformance.h"
#include "passthrough/install.h"

namespace sluice::backend {
namespace {

std::string named(const std::string& variable) {
  const char* value = std::getenv(variable.c_str());
  return value ? value : "";
}

// By the kernel's own driver, so that nothing that is tested helps; empty: done.
std::string blank(const std::string& block) {
  const int fd = ::open(block.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return "can't open " + block + ": " + std::strerror(errno);
  const std::vector<uint8_t> zeros(1 << 20);
  uint64_t done = 0;
  while (done < kSubjectSize) {
    const ssize_t n = ::pwrite(fd, zeros.data(), zeros.size(), static_cast<off_t>(done));
    if (n <= 0) break;
    done += static_cast<uint64_t>(n);
  }
  const bool durable = fsync(fd) == 0;
  close(fd);
  return done == kSubjectSize && durable ? "" : "can't write zeros to " + block;
}

struct DeviceSubject : Subject {
  DeviceSubject(const std::string& kind, const std::string& variable, uint32_t block_size) {
    passthrough::install();
    spec.kind = kind;
    spec.path = named(variable);
    spec.block_size = block_size;
    locked = true;
    grows = false;
    if (spec.path.empty()) {
      skip_reason = variable + " names no device; `make test-passthrough` makes some";
      return;
    }
    const std::string wrong = blank(named(variable + "_BLOCK"));
    EXPECT_EQ(wrong, "");
  }
};

ConformanceCase device(const std::string& name, const std::string& kind, uint32_t block_size,
                       const std::string& fault, bool write_cache) {
  const std::string variable =
      (kind == "sg" ? "SLUICE_SG_" : "SLUICE_NVME_") + std::to_string(block_size);
  return {name, [=]() -> std::unique_ptr<Subject> {
            auto subject = std::make_unique<DeviceSubject>(kind, variable, block_size);
            subject->faults = fault;
            subject->spec.write_cache = write_cache;
            return subject;
          }};
}

std::vector<ConformanceCase> cases() {
  std::vector<ConformanceCase> all;
  for (const char* kind : {"sg", "nvme"}) {
    const std::string name = kind;
    all.push_back(device(name, kind, 512, "", false));
    all.push_back(device(name + "_4096", kind, 4096, "", false));
    all.push_back(device(name + "_cached", kind, 512, "", true));
    all.push_back(device(name + "_delayed_and_short", kind, 512,
                         "short-every=2;delay-every=3;delay-ms=1", false));
  }
  return all;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Devices, Conformance, testing::ValuesIn(cases()), case_name);

}  // namespace sluice::backend
