#include <atomic>

#include "backend/block.h"
#include "backend/failure.h"
#include "backend/faulty.h"
#include "backend/file.h"
#include "backend/memory.h"
#include "backend/null.h"
#include "backend/spec.h"
#include "backend/zeros.h"

namespace sluice::backend {
namespace {

std::atomic<Opener> rbd_opener = nullptr;

Result<std::unique_ptr<Backend>> open_image(const Spec& spec) {
  const Opener opener = rbd_opener.load(std::memory_order_acquire);
  if (opener) return opener(spec);
  return fail(spec.path, "this program can't open images of Ceph", "use sluice-gateway");
}

Result<std::unique_ptr<Backend>> open_kind(const Spec& spec) {
  if (spec.kind == "memory") return Memory::open(spec);
  if (spec.kind == "file") return File::open(spec);
  if (spec.kind == "block") return Block::open(spec);
  if (spec.kind == "rbd") return open_image(spec);
  return std::unique_ptr<Backend>(std::make_unique<Null>(spec));
}

}  // namespace

void set_rbd_opener(Opener opener) { rbd_opener.store(opener, std::memory_order_release); }

Result<std::unique_ptr<Backend>> open(const Spec& spec) {
  Result<void> valid = validate(spec);
  if (!valid) {
    return Error{spec.kind + (spec.path.empty() ? "" : ":" + spec.path) + ": " + valid.error()};
  }
  Result<std::unique_ptr<Backend>> backend = open_kind(spec);
  if (!backend || spec.fault.empty()) return backend;
  Result<FaultPlan> plan = parse_faults(spec.fault);
  if (!plan) return Error{plan.error()};
  return std::unique_ptr<Backend>(
      std::make_unique<Faulty>(std::move(*backend), *plan, spec.block_size));
}

}  // namespace sluice::backend
