#include "control/desired.h"

#include <openssl/sha.h>

#include "base/limits.h"

namespace sluice::control {
namespace {

constexpr size_t kTextBytes = 96;  // typical per object: kind, uid, SHA-256

const wire::DesiredObject* find(const Objects& objects, wire::ObjectKind kind,
                                const std::string& id) {
  const ObjectPtr* found = objects.find({kind, id});
  return found == nullptr ? nullptr : found->get();
}

}  // namespace

const wire::DesiredSettings* Snapshot::settings() const {
  const auto* object = find(*objects, wire::OBJECT_KIND_SETTINGS, {});
  return object == nullptr ? nullptr : &object->settings();
}

const wire::DesiredVolume* Snapshot::volume(const std::string& uid) const {
  const auto* object = find(*objects, wire::OBJECT_KIND_VOLUME, uid);
  return object == nullptr ? nullptr : &object->volume();
}

const wire::DesiredHost* Snapshot::host(const std::string& uid) const {
  const auto* object = find(*objects, wire::OBJECT_KIND_HOST, uid);
  return object == nullptr ? nullptr : &object->host();
}

// Hashed in one call: many small calls cost several times as much.
std::string digest_of(const Objects& objects) {
  std::string text;
  text.reserve(objects.size() * kTextBytes);
  for (const ObjectPtr& object : objects) {
    text += static_cast<char>(kind_of(*object));
    text += object->id();
    text += '\0';
    text += object->digest();
  }
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

Result<Desired::Taken> Desired::take(wire::StreamUpdate update) {
  if (!staging_) {
    staging_ = true;
    staged_version_ = update.version();
    staged_bytes_ = 0;
    if (!update.full() && version() == 0)
      return give_up("a delta came with nothing to apply it to");
    staged_ = update.full() ? Objects() : *held_.objects;
  } else if (update.version() != staged_version_) {
    return give_up("an update of another version came before the last one was whole");
  }
  const Result<void> staged = stage(update);
  if (!staged) return give_up(staged.error());
  if (update.more()) return Taken::kMore;
  if (digest_of(staged_) != update.digest()) {
    return give_up("the desired state at version " + std::to_string(staged_version_) +
                   " has another digest here than at the control plane");
  }
  held_ = {staged_version_, update.digest(), std::make_shared<const Objects>(std::move(staged_))};
  distrusted_ = false;
  forget_unfinished();
  return Taken::kComplete;
}

Result<void> Desired::stage(wire::StreamUpdate& update) {
  staged_bytes_ += update.ByteSizeLong();
  if (staged_bytes_ > limits::kMaxDesiredBytes) return Error{"the update is too large"};
  std::vector<Key> removed;
  for (const wire::ObjectKey& key : update.removed()) removed.push_back({key.kind(), key.id()});
  std::vector<ObjectPtr> put;
  for (wire::DesiredObject& object : *update.mutable_put()) {
    if (kind_of(object) == wire::OBJECT_KIND_UNSPECIFIED) {
      return Error{"the update holds an object of a kind that this release doesn't know"};
    }
    put.push_back(std::make_shared<const wire::DesiredObject>(std::move(object)));
  }
  staged_.change(removed, std::move(put));
  if (staged_.size() > limits::kMaxDesiredObjects)
    return Error{"the update holds too many objects"};
  return {};
}

Result<Desired::Taken> Desired::give_up(const std::string& why) {
  forget_unfinished();
  distrusted_ = true;
  return Error{why};
}

void Desired::forget_unfinished() {
  staging_ = false;
  staged_.clear();
}

}  // namespace sluice::control
