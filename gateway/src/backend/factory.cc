#include <algorithm>
#include <array>
#include <atomic>

#include "backend/block.h"
#include "backend/failure.h"
#include "backend/file.h"
#include "backend/memory.h"
#include "backend/null.h"
#include "backend/spec.h"
#include "backend/zeros.h"

namespace sluice::backend {
namespace {

struct Installed {
  std::string_view kind;
  std::string_view what;  // in words
  std::atomic<Opener> opener = nullptr;
};
std::array<Installed, 3> installed = {
    {{"rbd", "images of Ceph"}, {"sg", "SCSI devices"}, {"nvme", "NVMe namespaces"}}};

Installed* installed_of(std::string_view kind) {
  const auto found = std::find_if(installed.begin(), installed.end(),
                                  [&](const Installed& one) { return one.kind == kind; });
  return found == installed.end() ? nullptr : &*found;
}

Result<std::unique_ptr<Backend>> open_kind(const Spec& spec) {
  if (spec.kind == "memory") return Memory::open(spec);
  if (spec.kind == "file") return File::open(spec);
  if (spec.kind == "block") return Block::open(spec);
  if (const Installed* room = installed_of(spec.kind)) {
    if (const Opener opener = room->opener.load(std::memory_order_acquire)) return opener(spec);
    return fail(spec.path, "this program can't open " + std::string(room->what),
                "use sluice-gateway");
  }
  return std::unique_ptr<Backend>(std::make_unique<Null>(spec));
}

}  // namespace

void set_opener(std::string_view kind, Opener opener) {
  if (Installed* room = installed_of(kind)) room->opener.store(opener, std::memory_order_release);
}

Result<std::unique_ptr<Backend>> open(const Spec& spec) {
  Result<void> valid = validate(spec);
  if (!valid) {
    return Error{spec.kind + (spec.path.empty() ? "" : ":" + spec.path) + ": " + valid.error()};
  }
  return open_kind(spec);
}

}  // namespace sluice::backend
