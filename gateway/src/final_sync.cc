#include "final_sync.h"

#include <memory>

#include "base/executor.h"
#include "unit/unit.h"

namespace sluice {

void sync_caches(const lun::Exports& exports, Nanos bound) {
  Executor executor({.threads = 1, .at_end = Executor::AtEnd::kRunQueued, .destructor_waits = 0});
  for (const auto& target : exports.all()) {
    for (const auto& entry : target->luns()) {
      std::shared_ptr<backend::Backend> backend = entry.unit->shared_backend();
      if (backend == nullptr) continue;
      const std::string group = backend->hangs_with();
      executor.post({group}, [backend] { backend->sync_cache(); });
    }
  }
  executor.stop(bound);
}

}  // namespace sluice
