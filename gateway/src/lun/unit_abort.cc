// Aborting the commands of many nexuses, which live on many reactors.
#include <map>

#include "lun/countdown.h"
#include "lun/task_set.h"
#include "lun/unit.h"

namespace sluice::lun {
namespace {

struct Affected {
  std::shared_ptr<Itl> itl;
  bool own = false;
};

}  // namespace

void Unit::abort_everywhere(Reactors& reactors, unsigned reply_to, const Nexus* by,
                            bool include_own, std::function<bool(const NexusId&)> which,
                            std::function<void()> done, const Command* except) {
  std::map<unsigned, std::vector<Affected>> by_reactor;
  {
    std::lock_guard lock(mutex_);
    for (Itl* itl : itls_) {
      const bool own = &itl->nexus() == by;
      if ((own && !include_own) || (which && !which(itl->nexus().id()))) continue;
      // Empty when its last reference is going just now: then it has no commands either.
      if (auto alive = itl->weak_from_this().lock()) {
        by_reactor[itl->nexus().lane().reactor].push_back({std::move(alive), own});
      }
    }
  }
  auto all = std::make_shared<Countdown>([&reactors, reply_to, done = std::move(done)]() mutable {
    reactors.post(reply_to, std::move(done));
  });
  for (auto& [reactor, affected] : by_reactor) {
    for (size_t i = 0; i < affected.size(); ++i) all->begin();
    reactors.post(reactor, [these = std::move(affected), all, except] {
      for (const Affected& a : these) {
        abort_all(*a.itl, !a.own, except);
        if (!drain(*a.itl, except, [all] { all->through(); })) all->through();
      }
    });
  }
  all->through();
}

}  // namespace sluice::lun
