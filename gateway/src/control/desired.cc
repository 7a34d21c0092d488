#include "control/desired.h"

#include <openssl/evp.h>

#include "base/limits.h"

namespace sluice::control {
namespace {

constexpr size_t kDigestBytes = 32;  // SHA-256

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new()) { EVP_DigestInit_ex(context_, EVP_sha256(), nullptr); }
  ~Sha256() { EVP_MD_CTX_free(context_); }
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void update(std::string_view bytes) { EVP_DigestUpdate(context_, bytes.data(), bytes.size()); }
  std::string finish() {
    std::string digest(kDigestBytes, '\0');
    EVP_DigestFinal_ex(context_, reinterpret_cast<unsigned char*>(digest.data()), nullptr);
    return digest;
  }

 private:
  EVP_MD_CTX* context_;
};

const wire::DesiredObject* find(const Objects& objects, wire::ObjectKind kind,
                                const std::string& id) {
  const auto at = objects.find({kind, id});
  return at == objects.end() ? nullptr : at->second.get();
}

}  // namespace

Key key_of(const wire::DesiredObject& object) {
  using Object = wire::DesiredObject;
  switch (object.object_case()) {
    case Object::kSettings:
      return {wire::OBJECT_KIND_SETTINGS, object.id()};
    case Object::kListener:
      return {wire::OBJECT_KIND_LISTENER, object.id()};
    case Object::kPeer:
      return {wire::OBJECT_KIND_PEER, object.id()};
    case Object::kPool:
      return {wire::OBJECT_KIND_POOL, object.id()};
    case Object::kVolume:
      return {wire::OBJECT_KIND_VOLUME, object.id()};
    case Object::kHost:
      return {wire::OBJECT_KIND_HOST, object.id()};
    case Object::kTarget:
      return {wire::OBJECT_KIND_TARGET, object.id()};
    case Object::OBJECT_NOT_SET:
      break;
  }
  return {};
}

wire::ObjectKey to_wire(const Key& key) {
  wire::ObjectKey out;
  out.set_kind(key.kind);
  out.set_id(key.id);
  return out;
}

std::string text_of(const Key& key) {
  static constexpr const char* kNames[] = {"object", "settings", "listener", "peer",
                                           "pool",   "volume",   "host",     "target"};
  const auto kind = static_cast<size_t>(key.kind);
  const std::string name = kind < std::size(kNames) ? kNames[kind] : kNames[0];
  return key.id.empty() ? name : name + ' ' + key.id;
}

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

std::string digest_of(const Objects& objects) {
  Sha256 sha;
  for (const auto& [key, object] : objects) {
    const char kind = static_cast<char>(key.kind);
    sha.update({&kind, 1});
    sha.update(key.id);
    const char zero = 0;
    sha.update({&zero, 1});
    sha.update(object->digest());
  }
  return sha.finish();
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
  for (const wire::ObjectKey& removed : update.removed()) {
    staged_.erase({removed.kind(), removed.id()});
  }
  for (wire::DesiredObject& object : *update.mutable_put()) {
    Key key = key_of(object);
    if (key.kind == wire::OBJECT_KIND_UNSPECIFIED) {
      return Error{"the update holds an object of a kind that this release doesn't know"};
    }
    staged_[std::move(key)] = std::make_shared<const wire::DesiredObject>(std::move(object));
  }
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
