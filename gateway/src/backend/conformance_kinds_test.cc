// The kinds of this room, each as it is, with delays, short transfers and claimed atomicity.
#include <memory>
#include <string>
#include <vector>

#include "backend/conformance.h"
#include "backend/test_storage.h"

namespace sluice::backend {
namespace {

std::unique_ptr<Subject> in_memory(const std::string& kind, uint32_t block_size) {
  auto subject = std::make_unique<Subject>();
  subject->spec.kind = kind;
  subject->spec.size = kSubjectSize;
  subject->spec.block_size = block_size;
  subject->stores_data = kind == "memory";
  subject->lends = true;
  return subject;
}

struct FileSubject : Subject {
  FileSubject(const std::string& parent, bool direct) : scratch(parent) {
    skip_reason = scratch.skip_reason();
    spec.kind = "file";
    spec.path = scratch.file("disk.img");
    spec.size = kSubjectSize;
    spec.direct = direct;
    locked = true;
    if (!skip_reason.empty()) return;
    // A filesystem without direct I/O, for example. Creates the file, too.
    auto opened = open(spec);
    if (!opened) skip_reason = opened.error();
  }
  ScratchDirectory scratch;
};

struct BlockSubject : Subject {
  BlockSubject() : scratch("/var/tmp"), loop(scratch.file("backing.img"), kSubjectSize) {
    skip_reason = scratch.skip_reason().empty() ? loop.skip_reason() : scratch.skip_reason();
    spec.kind = "block";
    spec.path = loop.path();
    locked = true;
    grows = false;
  }
  ScratchDirectory scratch;
  LoopDevice loop;
};

std::unique_ptr<Subject> on_disk(bool direct, bool write_cache) {
  auto subject = std::make_unique<FileSubject>("/var/tmp", direct);
  subject->spec.write_cache = write_cache;
  if (ScratchDirectory::on_tmpfs("/var/tmp"))
    subject->skip_reason = "/var/tmp is on tmpfs, not on a disk";
  return subject;
}

std::unique_ptr<Subject> on_tmpfs(bool direct) {
  auto subject = std::make_unique<FileSubject>("/dev/shm", direct);
  if (!ScratchDirectory::on_tmpfs("/dev/shm")) subject->skip_reason = "/dev/shm is no tmpfs";
  return subject;
}

std::vector<ConformanceCase> cases(const std::string& prefix, const std::string& fault) {
  std::vector<ConformanceCase> plain = {
      {"null", [] { return in_memory("null", 512); }},
      {"memory", [] { return in_memory("memory", 512); }},
      {"memory_4096", [] { return in_memory("memory", 4096); }},
      {"file_tmpfs_buffered", [] { return on_tmpfs(false); }},
      {"file_tmpfs_direct", [] { return on_tmpfs(true); }},
      {"file_disk_buffered", [] { return on_disk(false, false); }},
      {"file_disk_buffered_cached", [] { return on_disk(false, true); }},
      {"file_disk_direct", [] { return on_disk(true, false); }},
      {"block_loop", []() -> std::unique_ptr<Subject> { return std::make_unique<BlockSubject>(); }},
  };
  for (ConformanceCase& c : plain) {
    c.name = prefix + c.name;
    c.make = [make = c.make, fault] {
      auto subject = make();
      subject->faults = fault;
      subject->lends = subject->lends && fault.empty();
      return subject;
    };
  }
  return plain;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Plain, Conformance, testing::ValuesIn(cases("", "")), case_name);
INSTANTIATE_TEST_SUITE_P(Delayed, Conformance,
                         testing::ValuesIn(cases("delayed_", "delay-every=2;delay-ms=1")),
                         case_name);
INSTANTIATE_TEST_SUITE_P(Shortened, Conformance,
                         testing::ValuesIn(cases("shortened_", "short-every=2;delay-every=3")),
                         case_name);
INSTANTIATE_TEST_SUITE_P(Atomic, Conformance,
                         testing::ValuesIn(cases("atomic_",
                                                 "atomic=16KiB;short-every=2;delay-every=3")),
                         case_name);

}  // namespace sluice::backend
