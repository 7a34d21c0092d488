#include "config/changes.h"

#include <fmt/format.h>

#include <map>

#include "backend/size_text.h"
#include "config/uuid.h"
#include "desired/state.h"

namespace sluice::config {
namespace {

struct Volume {
  const TargetConfig* target;
  const LunConfig* lun;
  std::string text() const { return desired::LunName{target->iqn, lun->id}.text(); }
};

class Differ {
 public:
  Differ(const Config& now, const Config& next) : now_(now), next_(next) {
    for (const TargetConfig& target : now.targets) {
      for (const LunConfig& lun : target.luns) {
        volumes_[lun.uuid] = {&target, &lun};
        if (!lun.spec.path.empty()) paths_[lun.spec.path] = {&target, &lun};
      }
    }
  }

  Result<Changes> run() {
    changes_.in_force = next_;
    globals();
    for (TargetConfig& target : changes_.in_force.targets) {
      const Result<void> done = one_target(&target);
      if (!done) return Error{done.error()};
    }
    return std::move(changes_);
  }

 private:
  static const TargetConfig* find(const Config& config, const std::string& iqn) {
    for (const TargetConfig& target : config.targets) {
      if (target.iqn == iqn) return &target;
    }
    return nullptr;
  }

  // Keeps the present value of what only a restart can change.
  template <class T>
  void keep(const T& now, T* in_force, const std::string& key) {
    if (now == *in_force) return;
    changes_.need_restart.push_back(key);
    *in_force = now;
  }

  void globals() {
    Config& config = changes_.in_force;
    keep(now_.control_plane, &config.control_plane, "control-plane");
    keep(now_.portals, &config.portals, "listen");
    keep(now_.gateway_number, &config.gateway_number, "gateway-number");
    keep(now_.reactors, &config.reactors, "reactors");
    keep(now_.reactor_memory, &config.reactor_memory, "reactor-memory");
    keep(now_.reactor_cpus, &config.reactor_cpus, "reactor-cpus");
    keep(now_.tcp_congestion, &config.tcp_congestion, "tcp-congestion");
    keep(now_.busy_poll, &config.busy_poll, "busy-poll");
    keep(now_.metrics, &config.metrics, "metrics");
    keep(now_.admin_socket, &config.admin_socket, "admin-socket");
    keep(now_.state_directory, &config.state_directory, "state-directory");
    keep(now_.core_dumps, &config.core_dumps, "core-dumps");
    keep(now_.connections, &config.connections, "connections");
    keep(now_.log.format, &config.log.format, "log.format");
    if (!same(now_.offer, config.offer)) {
      changes_.need_restart.emplace_back("iscsi");
      config.offer = now_.offer;
    }
    changes_.log_changed = now_.log != config.log;
  }

  Result<void> one_target(TargetConfig* target) {
    const TargetConfig* before = find(now_, target->iqn);
    if (before != nullptr) keep(before->alias, &target->alias, "alias of " + target->iqn);
    for (LunConfig& lun : target->luns) {
      const Result<void> done = one_volume(*target, &lun);
      if (!done) return done;
    }
    return {};
  }

  Result<void> one_volume(const TargetConfig& target, LunConfig* lun) {
    const std::string name = desired::LunName{target.iqn, lun->id}.text();
    const auto known = volumes_.find(lun->uuid);
    const bool stays = known != volumes_.end() && known->second.lun->spec.kind == lun->spec.kind &&
                       known->second.lun->spec.path == lun->spec.path;
    if (stays) return changed_volume(name, *known->second.lun, lun);
    // Its backend holds a lock on the path, which must go first (DESIGN R2).
    const auto taken = paths_.find(lun->spec.path);
    if (taken != paths_.end()) {
      return Error{fmt::format(
          "{}: {} is open as {} under UUID {}, and identities don't change; give it that UUID, or "
          "remove the LUN in one reload and add it in the next",
          name, lun->spec.path, taken->second.text(), format_uuid(taken->second.lun->uuid))};
    }
    changes_.opens.insert(lun->uuid);
    return {};
  }

  Result<void> changed_volume(const std::string& name, const LunConfig& before, LunConfig* after) {
    backend::Spec& spec = after->spec;
    keep(before.spec.block_size, &spec.block_size, name + ": block-size");
    keep(before.spec.direct, &spec.direct, name + ": io");
    keep(before.spec.read_only, &spec.read_only, name + ": read-only");
    keep(before.spec.ceph, &spec.ceph, name + ": rbd");
    keep(before.product, &after->product, name + ": product");
    keep(before.oui, &after->oui, name + ": oui");
    keep(before.physical_block_size, &after->physical_block_size, name + ": physical-block-size");
    if (spec.size < before.spec.size && spec.size != 0) {
      return Error{fmt::format("{}: can't shrink from {} to {}, data would be lost", name,
                               backend::format_size(before.spec.size),
                               backend::format_size(spec.size))};
    }
    if (spec.size != 0 && spec.size != before.spec.size) changes_.resizes.insert(after->uuid);
    if (spec.write_cache != before.spec.write_cache) changes_.caches.insert(after->uuid);
    return {};
  }

  const Config& now_;
  const Config& next_;
  std::map<Uuid, Volume> volumes_;
  std::map<std::string, Volume> paths_;
  Changes changes_;
};

}  // namespace

Result<Changes> diff(const Config& now, const Config& next) { return Differ(now, next).run(); }

Result<Changes> from_scratch(const Config& config) {
  Config nothing = config;
  nothing.targets.clear();
  return diff(nothing, config);
}

}  // namespace sluice::config
