#include "control/applier.h"

#include <algorithm>

#include "base/log.h"

namespace sluice::control {

std::map<Key, std::string> Applier::apply(Snapshot next) {
  std::vector<Action> actions = diff(*now_.objects, *next.objects);
  std::set<Key> in_it;
  for (const Action& action : actions) in_it.insert(action.key);
  const auto changes = [&](wire::ObjectKind kind) {
    return std::any_of(actions.begin(), actions.end(),
                       [kind](const Action& action) { return action.key.kind == kind; });
  };
  std::swap(now_, next);
  if (changes(wire::OBJECT_KIND_HOST) || changes(wire::OBJECT_KIND_TARGET))
    targets_.show_hosts(now_);
  for (const Action& action : actions) run(action);
  if (changes(wire::OBJECT_KIND_PEER) && around_.peers) update_peers();
  // A refused object may have lacked one that this update brought.
  std::vector<Key> again;
  for (const auto& [key, reason] : refused_) {
    if (!in_it.contains(key)) again.push_back(key);
  }
  for (const Key& key : again) {
    const ObjectPtr* object = now_.objects->find(key);
    if (object != nullptr) run({Action::What::kAgain, key, *object});
  }
  return refused_;
}

std::map<Key, std::string> Applier::apply_again() { return apply(Snapshot(now_)); }

void Applier::run(const Action& action) {
  if (action.what == Action::What::kRemove) {
    remove(action);
    refused_.erase(action.key);
    return;
  }
  const Result<void> done = put(action);
  if (done) {
    refused_.erase(action.key);
    return;
  }
  std::string& reason = refused_[action.key];
  if (reason == done.error()) return;
  reason = done.error();
  log::error("refused", {{"object", text_of(action.key)}, {"reason", reason}});
}

Result<void> Applier::put(const Action& action) {
  const wire::DesiredObject& object = *action.object;
  switch (action.key.kind) {
    case wire::OBJECT_KIND_SETTINGS:
      return put_settings(object.settings());
    case wire::OBJECT_KIND_POOL:
      return volumes_.put_pool(object.pool());
    case wire::OBJECT_KIND_VOLUME:
      return volumes_.put(object.volume());
    case wire::OBJECT_KIND_TARGET:
      return targets_.put(object.target(), now_);
    case wire::OBJECT_KIND_LISTENER:
      return put_listener(action.key, object.listener());
    default:
      return {};  // hosts are put with their targets, peers all at once
  }
}

void Applier::remove(const Action& action) {
  switch (action.key.kind) {
    case wire::OBJECT_KIND_POOL:
      return volumes_.pools().remove(action.key.id);
    case wire::OBJECT_KIND_VOLUME:
      return volumes_.remove(action.key.id);
    case wire::OBJECT_KIND_TARGET:
      return targets_.remove(action.key.id);
    case wire::OBJECT_KIND_LISTENER: {
      const auto at = listening_.find(action.key);
      if (at == listening_.end()) return;
      around_.close_portal(at->second.bound);
      listening_.erase(at);
      return show_portals();
    }
    default:
      return;
  }
}

Result<void> Applier::put_settings(const wire::DesiredSettings& settings) {
  if (settings.number() == 0 || settings.number() > UINT16_MAX) {
    return Error{"a gateway's number is 1 to 65535, not " + std::to_string(settings.number())};
  }
  volumes_.set_self(static_cast<uint16_t>(settings.number()));
  return around_.settings(settings);
}

void Applier::update_peers() {
  std::vector<wire::DesiredPeer> peers;
  for (const ObjectPtr& object : *now_.objects) {
    if (object->has_peer()) peers.push_back(object->peer());
  }
  around_.peers(peers);
}

Result<void> Applier::put_listener(const Key& key, const wire::DesiredListener& listener) {
  if (listener.portal_group_tag() == 0 || listener.portal_group_tag() > UINT16_MAX) {
    return Error{"portal group tag " + std::to_string(listener.portal_group_tag()) +
                 " is not 1 to 65535"};
  }
  const auto there = listening_.find(key);
  if (there != listening_.end()) {
    const wire::DesiredListener& now = there->second.listener;
    if (now.listen() == listener.listen() &&
        now.portal_group_tag() == listener.portal_group_tag()) {
      there->second.listener = listener;
      show_portals();
      return {};
    }
    around_.close_portal(there->second.bound);
    listening_.erase(there);
    show_portals();
  }
  const Result<std::string> bound = around_.open_portal(listener);
  if (!bound) return Error{bound.error()};
  log::info("portal open", {{"portal", bound.value()}, {"tpgt", listener.portal_group_tag()}});
  listening_[key] = {listener, bound.value()};
  show_portals();
  return {};
}

void Applier::show_portals() {
  std::vector<lun::PortalInfo> infos;
  for (const auto& [key, listening] : listening_) {
    const auto tag = static_cast<uint16_t>(listening.listener.portal_group_tag());
    const std::string& advertised = listening.listener.advertised();
    infos.push_back({.address = advertised.empty() ? listening.bound : advertised,
                     .tpgt = tag,
                     .relative_port = tag});
  }
  around_.exports.set_portals(std::move(infos));
}

}  // namespace sluice::control
