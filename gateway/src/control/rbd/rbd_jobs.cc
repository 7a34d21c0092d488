#include "control_rbd/rbd_jobs.h"

#include <algorithm>
#include <utility>

#include "backend/failure.h"
#include "base/safety_mutation.h"
#include "control_rbd/image_object.h"
#include "control_rbd/lock_contention_watcher.h"
#include "control_rbd/rbd_marker.h"
#include "control_rbd/record_object.h"
#include "rbd/images.h"
#include "rbd/served_image.h"

namespace sluice::control {
namespace {

using rbd::Image;
using rbd::Images;

constexpr uint32_t kReportEvery = 10;  // permille
constexpr size_t kMostListed = 4096;   // JobResult.images
// Prefix of the snapshot from which a copy of the present image is made; the copy's name follows.
constexpr std::string_view kForCopy = "for-";

// One job on one pool, by the pool's recorded client.
class Work {
 public:
  // `objects` uses a second handle of the pool, for records only.
  Work(std::shared_ptr<PoolClient> pool, std::shared_ptr<OpenImages> open,
       std::shared_ptr<rbd::Pool> by, ImageObjects objects)
      : pool_(std::move(pool)),
        open_(std::move(open)),
        by_(std::move(by)),
        objects_(std::move(objects)),
        images_(by_) {}

  Result<void> create(const wire::CreateImage& job) {
    const auto size = static_cast<uint64_t>(job.size_bytes());
    if (job.size_bytes() <= 0)
      return Error{shown(job.location()) + ": its size must be more than 0"};
    Result<void> created =
        images_.create(job.location(), {.size = size, .data_pool = pool_->desired().data_pool()});
    return created ? record(job.location()) : created;
  }

  Result<void> resize(const wire::ResizeImage& job) {
    return grow(job.location(), static_cast<uint64_t>(job.size_bytes()));
  }

  Result<void> remove(const wire::DeleteImage& job) {
    if (open_->served(job.location())) return served_here(job.location());
    const OpenImages::Use use(open_, job.location());
    // Another image of this name is not the volume's, so it stays. remove() reports an absent one.
    if (const auto present = images_.identity(job.location())) {
      const auto same = verify_image_id(objects_, job.location(), present.value());
      if (!same) return Error{"not deleted: " + same.error()};
    }
    const auto seconds = static_cast<uint64_t>(std::max<int64_t>(job.trash_seconds(), 0));
    Result<void> removed =
        seconds == 0 ? remove_now(job.location()) : images_.trash(job.location(), seconds);
    if (removed) removed = forget_image(objects_, job.location());
    const std::string volume = rbd::volume_of(job.location());
    if (!removed || volume.empty()) return removed;
    return RecordObject(objects_.pool, volume).remove();
  }

  Result<void> snapshot(const std::string& location, const std::string& name) {
    Result<void> fine = check_name(name);
    if (!fine) return fine;
    return with_image(location, [&](Image& image) {
      Result<void> verified = verify(location, image);
      return verified ? rbd::snapshot(image, name) : verified;
    });
  }

  Result<void> delete_snapshot(const std::string& location, const std::string& name) {
    Result<void> done =
        with_image(location, [&](Image& image) { return rbd::remove_snapshot(image, name); });
    if (done) return done;
    const Result<bool> there = images_.exists(location);
    return there && !there.value() ? Result<void>() : done;  // it was deleted with its image
  }

  // An interrupted copy is repeated from its snapshot; a copy with its final name is complete.
  Result<void> clone(const wire::CloneImage& job) {
    const bool as_it_is = job.snapshot_of().empty();
    const std::string& of = as_it_is ? job.source_location() : job.snapshot_of();
    const std::string name =
        as_it_is ? std::string(kForCopy) + job.location() : job.source_location();
    const Result<bool> made = images_.exists(job.location());
    if (!made) return Error{made.error()};
    if (!made.value()) {
      Result<void> taken = as_it_is ? snapshot(of, name) : Result<void>();
      if (!taken) return taken;
      Result<void> cloned = images_.clone(of, name, job.location(), pool_->desired().data_pool());
      // The job may not be repeated, and only this gateway knows the snapshot.
      if (!cloned && as_it_is) static_cast<void>(delete_snapshot(of, name));
      if (!cloned) return cloned;
    }
    Result<void> recorded = record(job.location());
    if (!recorded) return recorded;
    if (as_it_is) {
      Result<void> removed = delete_snapshot(of, name);
      if (!removed) return removed;
    }
    return grow(job.location(), static_cast<uint64_t>(job.size_bytes()));
  }

  // Uses an open image of its own, even if this gateway serves the image: flattening takes long,
  // and the served image may have to close. Ceph passes the work to the lock's owner.
  Result<void> flatten(const wire::FlattenImage& job,
                       const std::function<void(uint32_t)>& progress) {
    const OpenImages::Use use(open_, job.location());
    auto image = open(job.location());
    if (!image) return Error{image.error()};
    Result<void> verified = verify(job.location(), **image);
    if (!verified) return verified;
    if (use.stopped()) {
      return backend::fail(shown(job.location()),
                           "can't be flattened: it was stopped, as the image is needed elsewhere",
                           "try again");
    }
    const LockContentionWatcher watcher(**image);
    uint32_t reported = 0;
    return rbd::flatten(**image, [&](unsigned permille) {
      if (permille >= reported + kReportEvery) progress(reported = permille);
      return !use.stopped() && !watcher.is_contended();
    });
  }

  Result<void> roll_back(const wire::RollBackImage& job,
                         const std::function<void(uint32_t)>& progress) {
    if (open_->served(job.location())) return served_here(job.location());
    const OpenImages::Use use(open_, job.location());
    auto image = open(job.location());
    if (!image) return Error{image.error()};
    const Result<rbd::ImageIdentity> present = (*image)->identity();
    if (!present) return Error{present.error()};
    const Result<uint64_t> size = verify_image_id(objects_, job.location(), present.value());
    if (!size) return Error{size.error()};
    uint32_t reported = 0;
    Result<void> done = rbd::roll_back(**image, job.snapshot_location(), [&](unsigned permille) {
      if (permille >= reported + kReportEvery) progress(reported = permille);
      return true;  // half a rollback would be neither state
    });
    if (!done) return done;
    // The snapshot may be from a time when the volume was smaller.
    const Result<uint64_t> now = (*image)->size();
    if (!now) return Error{now.error()};
    return now.value() < size.value() ? (*image)->grow(size.value()) : Result<void>();
  }

  JobOutcome adopt(const wire::AdoptImage& job) {
    if (open_->served(job.image())) return {.problem = served_here(job.image()).message};
    const OpenImages::Use use(open_, job.image());
    const Result<uint64_t> size = images_.adopt_as(job.image(), job.location());
    if (!size) return {.problem = size.error()};
    const Result<void> recorded = record(job.location());
    if (!recorded) return {.problem = recorded.error()};
    return {.size_bytes = static_cast<int64_t>(size.value())};
  }

  JobOutcome list() {
    const auto found = images_.list();
    if (!found) return {.problem = found.error()};
    JobOutcome outcome;
    for (const rbd::ImageFacts& facts : found.value()) {
      if (outcome.images.size() < kMostListed) outcome.images.push_back(facts.image);
    }
    return outcome;
  }

 private:
  std::string shown(const std::string& location) const { return by_->name() + '/' + location; }

  Result<void> verify(const std::string& location, const Image& image) const {
    const Result<rbd::ImageIdentity> present = image.identity();
    if (!present) return Error{present.error()};
    return verify_image(objects_, location, present.value());
  }

  // For an image that was created by this job or an earlier attempt.
  Result<void> record(const std::string& location) {
    const Result<rbd::ImageIdentity> present = images_.identity(location);
    if (!present) return Error{present.error()};
    return verify_image(objects_, location, present.value());
  }

  Error served_here(const std::string& location) const {
    return backend::fail(shown(location), "is served by this gateway",
                         "take the volume from its targets first");
  }

  Result<void> check_name(const std::string& snapshot) const {
    if (!snapshot.empty() && snapshot.find_first_of("/@") == std::string::npos) return {};
    return Error{"\"" + snapshot + "\" is no name of a snapshot"};
  }

  // Also deletes the snapshots of failed copies, which no job needs any more.
  Result<void> remove_now(const std::string& location) {
    // otherwise the image is deleted or in use; remove() reports which
    if (auto image = open(location)) {
      const Result<std::vector<std::string>> names = rbd::snapshots(**image);
      if (!names) return Error{names.error()};
      for (const std::string& name : names.value()) {
        const bool copys =
            name.starts_with(kForCopy) && !rbd::volume_of(name.substr(kForCopy.size())).empty();
        Result<void> removed = copys ? rbd::remove_snapshot(**image, name) : Result<void>();
        if (!removed) return removed;
      }
    }
    return images_.remove(location);
  }

  // Opens an image that no other client has locked: a hung client would block this call and lose
  // its lock. A dead client, which Ceph detects by its watch, is fenced first, as in a takeover.
  Result<std::unique_ptr<Image>> open(const std::string& location) {
    auto image = images_.open(location);
    if (!image) return image;
    const std::string owner = (*image)->lock_owner();
    if (owner.empty() || owner == by_->client().addresses()) return image;
    const Result<std::vector<std::string>> watchers = (*image)->watchers();
    if (!watchers) return Error{watchers.error()};
    if (std::ranges::count(watchers.value(), owner) == 0) {
      const Result<void> fenced = by_->client().blocklist(owner);
      if (!fenced) return Error{fenced.error()};
      return image;
    }
    return backend::fail(shown(location), "is open by another client of Ceph (" + owner + ")",
                         "its owner does this, or close it there");
  }

  Result<void> with_image(const std::string& location,
                          const std::function<Result<void>(Image&)>& work) {
    if (const auto served = open_->served(location)) return served->use(work);
    const OpenImages::Use use(open_, location);
    auto image = open(location);
    if (!image) return Error{image.error()};
    return work(**image);
  }

  Result<void> grow(const std::string& location, uint64_t bytes) {
    return with_image(location, [&](Image& image) -> Result<void> {
      // Before it grows: an image that lost its end must not hide that by a new one.
      Result<void> verified = verify(location, image);
      if (!verified) return verified;
      const Result<uint64_t> size = image.size();
      if (!size) return Error{size.error()};
      Result<void> grown = size.value() >= bytes ? Result<void>() : image.grow(bytes);
      return grown ? verify(location, image) : grown;
    });
  }

  const std::shared_ptr<PoolClient> pool_;
  const std::shared_ptr<OpenImages> open_;
  const std::shared_ptr<rbd::Pool> by_;
  const ImageObjects objects_;
  Images images_;
};

// Uses any client: fencing opens no image, and a takeover must not wait until a client is recorded.
Result<void> fence(const PoolClient& pool, const wire::FenceClients& job) {
  if (mutation_disables(Guard::kBlocklist) || mutation_disables(Guard::kRbdLockMode)) return {};
  auto by = pool.connected();
  if (!by) return Error{by.error()};
  if (const std::string& cluster = (*by)->client().cluster_id();
      !is_cluster_of(pool.expected(), cluster)) {
    return Error{
        pool.name() + ": the monitors are of cluster " + cluster +
        ", in which the pool's marker was not written: clients of another cluster can't be "
        "blocklisted here. Correct spec.rbd.monitors of the StoragePool"};
  }
  const auto seconds = static_cast<uint32_t>(
      std::clamp<int64_t>(job.expire_seconds(), 1, rbd::RadosClient::kForGood));
  for (const std::string& client : job.clients()) {
    Result<void> done = (*by)->client().blocklist(client, seconds);
    if (!done) return done;
  }
  return (*by)->client().wait_for_latest_map();
}

JobOutcome outcome(const Result<void>& done) {
  return {.problem = done ? std::string() : done.error()};
}

}  // namespace

JobOutcome run_rbd_job(const std::shared_ptr<PoolClient>& pool,
                       const std::shared_ptr<OpenImages>& images, const wire::Job& job,
                       const std::function<void(uint32_t permille)>& progress) {
  if (job.has_fence_clients()) return outcome(fence(*pool, job.fence_clients()));
  std::string problem;
  Nanos since = 0;
  const std::shared_ptr<rbd::Pool> by = pool->recorded(&problem, &since);
  if (!by) {
    if (problem.empty()) problem = "its client of Ceph is not recorded by the control plane yet";
    return {.problem = pool->name() + ": " + problem};
  }
  const Result<PoolClient::Storage> storage = pool->identify(by->client());
  if (!storage) return {.problem = storage.error()};
  if (const std::string& doubt = storage.value().identified.doubt; !doubt.empty()) {
    return {.problem =
                "nothing is changed in storage that is not known to be the pool's: " + doubt};
  }
  auto objects = by->client().again(*storage.value().pool);
  if (!objects) return {.problem = objects.error()};
  Work work(pool, images, storage.value().pool, {objects.value(), storage.value().adoptions()});
  switch (job.action_case()) {
    case wire::Job::kCreate:
      return outcome(work.create(job.create()));
    case wire::Job::kResize:
      return outcome(work.resize(job.resize()));
    case wire::Job::kDelete:
      return outcome(work.remove(job.delete_()));
    case wire::Job::kSnapshot:
      return outcome(work.snapshot(job.snapshot().location(), job.snapshot().snapshot_location()));
    case wire::Job::kDeleteSnapshot:
      return outcome(work.delete_snapshot(job.delete_snapshot().location(),
                                          job.delete_snapshot().snapshot_location()));
    case wire::Job::kClone:
      return outcome(work.clone(job.clone()));
    case wire::Job::kFlatten:
      return outcome(work.flatten(job.flatten(), progress));
    case wire::Job::kAdopt:
      return work.adopt(job.adopt());
    case wire::Job::kRollBack:
      return outcome(work.roll_back(job.roll_back(), progress));
    case wire::Job::kListImages:
      return work.list();
    case wire::Job::kFenceClients:
    case wire::Job::ACTION_NOT_SET:
      break;
  }
  return {.problem = "this release doesn't know what the job asks for", .unsupported = true};
}

}  // namespace sluice::control
