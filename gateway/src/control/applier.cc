#include "control/applier.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/log.h"
#include "control/desired_target.h"

namespace sluice::control {
namespace {

bool is_of_target(const Action& action) { return action.key.kind == wire::OBJECT_KIND_TARGET; }
bool is_of_peer(const Action& action) { return action.key.kind == wire::OBJECT_KIND_PEER; }

}  // namespace

Applier::Applier(Surroundings surroundings, Volumes& volumes, LunNumbers& numbers)
    : around_(std::move(surroundings)),
      volumes_(volumes),
      units_(volumes, numbers),
      exporter_({.exports = around_.exports,
                 .reactors = around_.reactors,
                 .units = units_,
                 .review = around_.review}) {
  exporter_.apply({.discovery = desired::Discovery{.policy = lun::DiscoveryPolicy::kHosts}});
}

std::map<Key, std::string> Applier::apply(Snapshot next) {
  // This update may bring an object that a refused one refers to.
  std::set<Key> retried;
  for (const auto& [key, reason] : refused_) retried.insert(key);
  const std::vector<Action> actions = diff(*now_.objects, *next.objects, retried);
  std::swap(now_, next);
  const auto first = std::ranges::find_if(actions, is_of_target);
  const auto last = std::find_if_not(first, actions.end(), is_of_target);
  std::for_each(actions.begin(), first, [this](const Action& action) { run(action); });
  if (first != last) export_targets({first, last});
  std::for_each(last, actions.end(), [this](const Action& action) { run(action); });
  if (around_.peers && std::ranges::any_of(actions, is_of_peer)) update_peers();
  return refused_;
}

std::map<Key, std::string> Applier::apply_again() { return apply(Snapshot(now_)); }

void Applier::run(const Action& action) {
  if (action.what == Action::What::kRemove) {
    remove(action);
    refused_.erase(action.key);
    return;
  }
  note(action.key, put(action));
}

void Applier::note(const Key& key, const Result<void>& done) {
  if (done) {
    refused_.erase(key);
    return;
  }
  std::string& reason = refused_[key];
  if (reason == done.error()) return;
  reason = done.error();
  log::error("refused", {{"object", text_of(key)}, {"reason", reason}});
}

void Applier::export_targets(std::span<const Action> actions) {
  desired::Update update;
  std::vector<Key> put;
  for (const Action& action : actions) {
    if (action.what == Action::What::kRemove) {
      update.removed.push_back(action.key.id);
      refused_.erase(action.key);
      continue;
    }
    Result<desired::Target> target = desired_target(action.object->target(), now_);
    if (target) {
      update.put.push_back(std::move(target).value());
      put.push_back(action.key);
    } else {
      note(action.key, Error{target.error()});
    }
  }
  const desired::Outcome outcome = exporter_.apply(std::move(update));
  for (const Key& key : put) {
    const auto refused = outcome.refused.find(key.id);
    note(key, refused == outcome.refused.end() ? Result<void>() : Error{refused->second});
  }
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
    case wire::OBJECT_KIND_LISTENER:
      return put_listener(action.key, object.listener());
    default:
      return {};  // targets are put with their hosts in one update, peers all at once
  }
}

void Applier::remove(const Action& action) {
  switch (action.key.kind) {
    case wire::OBJECT_KIND_POOL:
      return volumes_.pools().remove(action.key.id);
    case wire::OBJECT_KIND_VOLUME:
      return volumes_.remove(action.key.id);
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
  std::vector<desired::Portal> portals;
  for (const auto& [key, listening] : listening_) {
    portals.push_back({.bound = listening.bound,
                       .advertised = listening.listener.advertised(),
                       .tpgt = static_cast<uint16_t>(listening.listener.portal_group_tag())});
  }
  exporter_.show_portals(portals);
}

}  // namespace sluice::control
