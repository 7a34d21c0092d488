#include "control_rbd/rbd_marker.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/record_text.h"
#include "control/local/two_copies.h"
#include "control/random_id.h"
#include "control_rbd/rados_object.h"
#include "rbd/images.h"

namespace sluice::control {
namespace {

constexpr size_t kUuidDigits = 32;

std::string digits_of(std::string uuid) {
  std::erase(uuid, '-');
  return uuid;
}

class CephPool final : public MarkedStorage {
 public:
  CephPool(std::shared_ptr<rbd::Pool> pool, const std::string& uid)
      : pool_(std::move(pool)), name_("sluice.pool." + uid), object_(pool_, name_) {}

  std::string shown() const override { return "pool " + pool_->name() + " of Ceph"; }
  std::string marker_name() const override { return "object " + name_; }
  std::string kind() const override { return "Ceph pool"; }
  std::string restore() const override {
    return "Restore the Ceph pool, or correct spec.rbd.monitors of the StoragePool";
  }
  std::string storage_id() const override {
    return pool_->client().cluster_id() + '/' + std::to_string(pool_->id());
  }
  std::string fresh_marker_id() const override {
    return digits_of(pool_->client().cluster_id()) + random_id();
  }

  Result<FoundMarker> find() override {
    Result<RadosObject::Found> found = object_.read(kCopyBytes, kCopyBytes);
    if (!found) return Error{found.error()};
    found_ = std::move(found).value();
    FoundMarker marker{.exists = found_.text.has_value(), .complete = found_.is_complete()};
    for (const std::optional<std::string>& sealed : {found_.text, found_.copy}) {
      const auto text = sealed ? unseal(*sealed) : std::nullopt;
      if (text && !marker.marker) marker.marker = parse_marker(*text);
    }
    return marker;
  }

  Result<std::string> missing_image(const wire::PoolIdentity& identity) override {
    if (identity.images().empty()) return std::string();
    const auto images = rbd::Images(pool_).list();
    if (!images) return Error{images.error()};
    std::set<std::string> present;
    for (const rbd::ImageFacts& facts : images.value()) present.insert(facts.image);
    for (const std::string& image : identity.images()) {
      if (!present.contains(image)) return image;
    }
    return std::string();
  }

  Result<std::string> unknown_image() override { return std::string(); }

  Result<bool> write(const PoolMarker& marker) override {
    return object_.replace(found_, seal(format_marker(marker)));
  }

 private:
  const std::shared_ptr<rbd::Pool> pool_;
  const std::string name_;
  RadosObject object_;
  RadosObject::Found found_;
};

}  // namespace

Result<Identified> identify_rbd_pool(std::shared_ptr<rbd::Pool> pool,
                                     const ExpectedPool& expected) {
  CephPool storage(std::move(pool), expected.uid);
  return identify_pool(storage, expected);
}

bool is_cluster_of(const ExpectedPool& expected, const std::string& fsid) {
  if (!expected.identity) return true;
  const wire::PoolIdentity& identity = *expected.identity;
  const bool is_confirmed = identity.confirmed_adoptions() > identity.adoptions();
  if (is_confirmed || identity.marker().size() <= kUuidDigits) return true;
  return identity.marker().starts_with(digits_of(fsid));
}

}  // namespace sluice::control
