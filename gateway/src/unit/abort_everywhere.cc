#include "unit/abort_everywhere.h"

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "unit/countdown.h"
#include "unit/unit.h"

namespace sluice::lun {
namespace {

struct Affected {
  std::shared_ptr<AttachedNexus> nexus;
  bool own = false;
};

}  // namespace

void abort_everywhere(Unit& unit, Reactors& reactors, unsigned reply_to, const AbortScope& scope,
                      std::function<void()> done) {
  std::map<unsigned, std::vector<Affected>> by_reactor;
  {
    const auto in_scope = [&scope](const AttachedNexus& nexus) {
      const bool spared = &nexus.nexus_id() == scope.by && !scope.include_own;
      return !spared && (!scope.which || scope.which(nexus.nexus_id()));
    };
    const std::lock_guard lock(unit.mutex());
    for (auto& nexus : unit.attached().living_locked(in_scope)) {
      const bool own = &nexus->nexus_id() == scope.by;
      const unsigned reactor = nexus->reactor_context().reactor;
      by_reactor[reactor].push_back({std::move(nexus), own});
    }
  }
  auto all = std::make_shared<Countdown>([&reactors, reply_to, done = std::move(done)]() mutable {
    reactors.post(reply_to, std::move(done));
  });
  for (auto& [reactor, affected] : by_reactor) {
    for (size_t i = 0; i < affected.size(); ++i) all->begin();
    reactors.post(reactor, [these = std::move(affected), all, except = scope.except,
                            released = scope.until_released] {
      for (const Affected& a : these) {
        a.nexus->abort_commands(!a.own, except);
        const auto through = [all] { all->through(); };
        const bool waits =
            released ? a.nexus->drain(except, through) : a.nexus->drain_attached(through);
        if (!waits) all->through();
      }
    });
  }
  all->through();
}

}  // namespace sluice::lun
