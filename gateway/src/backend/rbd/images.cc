#include "rbd/images.h"

#include <rbd/librbd.h>

#include <cerrno>
#include <string_view>
#include <utility>

#include "backend/failure.h"
#include "backend/size_text.h"
#include "base/limits.h"
#include "rbd/ceph_error.h"

namespace sluice::rbd {
namespace {

using backend::fail;
using backend::format_size;

constexpr std::string_view kPrefix = "volume-";
constexpr size_t kUuidText = 36;
constexpr uint64_t kFeatures =
    RBD_FEATURE_LAYERING | RBD_FEATURE_EXCLUSIVE_LOCK | RBD_FEATURE_DEEP_FLATTEN;
constexpr uint64_t kCloneFormat = 2;

class Options {
 public:
  explicit Options(const std::string& data_pool) {
    rbd_image_options_create(&options_);
    rbd_image_options_set_uint64(options_, RBD_IMAGE_OPTION_FORMAT, 2);
    rbd_image_options_set_uint64(options_, RBD_IMAGE_OPTION_FEATURES, kFeatures);
    if (data_pool.empty()) return;
    rbd_image_options_set_string(options_, RBD_IMAGE_OPTION_DATA_POOL, data_pool.c_str());
  }
  ~Options() { rbd_image_options_destroy(options_); }
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;
  rbd_image_options_t get() const { return options_; }

 private:
  rbd_image_options_t options_ = nullptr;
};

int tell(uint64_t done, uint64_t total, void* progress) {
  const auto& report = *static_cast<const Progress*>(progress);
  if (!report || total == 0) return 0;
  return report(static_cast<unsigned>(done * 1000 / total)) ? 0 : -ECANCELED;
}

void* pointer(const Progress& progress) { return const_cast<Progress*>(&progress); }  // NOLINT

Error failed(const std::string& name, const std::string& what, int r) {
  switch (-r) {
    case EBUSY:
      return fail(name, what + ": it is open somewhere, or clones need it",
                  "`rbd status " + name + "` shows by whom");
    case EROFS:
      return fail(name, what + ": another client holds its lock",
                  "`rbd lock ls " + name + "` shows which");
    case ECANCELED:
    case ERESTART:
      return fail(name, what + ": it was stopped, as the image is needed elsewhere", "try again");
    case ENOTEMPTY:
      return fail(name, what + ": it has snapshots", "delete them first");
    case EDQUOT:
    case ENOSPC:
      return fail(name, what + ": the pool is full", "make room, or raise its quota");
    case EACCES:
    case EPERM:
      return fail(name, what + ": not allowed", "the user needs `profile rbd` for the pool's OSDs");
    default:
      return fail(name, what + ": " + ceph_error(r), "look at `rbd info " + name + "`");
  }
}

}  // namespace

std::string image_of(const std::string& volume_uuid) { return std::string(kPrefix) + volume_uuid; }

std::string volume_of(const std::string& image) {
  const bool ours = image.starts_with(kPrefix) && image.size() == kPrefix.size() + kUuidText;
  return ours ? image.substr(kPrefix.size()) : "";
}

std::string unfinished(const std::string& image) { return image + ".unfinished"; }

Result<void> Images::create(const std::string& image, const NewImage& wanted) {
  const Options options(wanted.data_pool);
  int r = rbd_create4(pool_->context(), image.c_str(), wanted.size, options.get());
  if (r == -EEXIST) {
    const Result<bool> there = exists(image);
    if (!there) return Error{there.error()};
    if (!there.value()) {  // a name without a header: nothing was ever written by it
      Result<void> removed = remove_one(image);
      if (!removed) return removed;
      r = rbd_create4(pool_->context(), image.c_str(), wanted.size, options.get());
    }
  }
  if (r == -EEXIST) {
    const Result<uint64_t> size = adopt(image);
    if (!size) return Error{size.error()};
    if (size.value() == wanted.size) return {};
    return fail(
        named(image),
        "exists with " + format_size(size.value()) + " instead of " + format_size(wanted.size),
        "remove it, or adopt it as it is");
  }
  if (r == -ENOENT && !wanted.data_pool.empty()) {
    return fail(named(image), "there is no data pool " + wanted.data_pool, "create it");
  }
  if (r < 0) return failed(named(image), "can't be created", r);
  return {};
}

Result<std::unique_ptr<Image>> Images::open(const std::string& image) {
  return Image::open(pool_, image, Image::Access::kShared);
}

Result<uint64_t> Images::adopt(const std::string& image) {
  auto opened = open(image);
  if (!opened) return Error{opened.error()};
  Result<uint64_t> size = (*opened)->size();
  if (size && (*size == 0 || *size % 512 != 0)) {
    return fail(named(image), std::to_string(*size) + " bytes are no whole blocks",
                "rbd resize it to a multiple of 512 bytes");
  }
  return size;
}

Result<uint64_t> Images::adopt_as(const std::string& image, const std::string& name) {
  const Result<bool> before = exists(image);
  const Result<bool> after = exists(name);
  if (!before || !after) return Error{before ? after.error() : before.error()};
  if (!before.value() && after.value()) return adopt(name);
  if (after.value()) {
    return fail(named(image), "can't be renamed: there is another image " + name,
                "remove that one");
  }
  Result<uint64_t> size = adopt(image);
  if (!size) return size;
  const Takeover from_nobody{.of_silent = 0};
  auto owned = Image::open(pool_, image, Image::Access::kOwned, from_nobody);
  if (!owned) return Error{owned.error()};
  owned->reset();
  const int r = rbd_rename(pool_->context(), image.c_str(), name.c_str());
  if (r < 0) return failed(named(image), "can't be renamed", r);
  return size;
}

// That it can't be looked at doesn't say that it isn't there.
Result<bool> Images::exists(const std::string& image) {
  rbd_image_t opened = nullptr;
  const int r = rbd_open_read_only(pool_->context(), image.c_str(), &opened, nullptr);
  if (r == -ENOENT) return false;
  if (r < 0) return failed(named(image), "can't be opened", r);
  rbd_close(opened);
  return true;
}

Result<ImageIdentity> Images::identity(const std::string& image) {
  auto opened = Image::open(pool_, image, Image::Access::kReadOnly);
  if (!opened) return Error{opened.error()};
  return (*opened)->identity();
}

Result<void> Images::grow(const std::string& image, uint64_t bytes) {
  auto opened = open(image);
  if (!opened) return Error{opened.error()};
  Result<uint64_t> size = (*opened)->size();
  if (!size) return Error{size.error()};
  if (*size == bytes) return {};
  if (*size > bytes) {
    return fail(named(image),
                "can't shrink from " + format_size(*size) + " to " + format_size(bytes) +
                    ", data would be lost",
                "make a smaller volume and copy");
  }
  return (*opened)->grow(bytes);
}

Result<void> Images::remove(const std::string& image) {
  Result<void> removed = remove_one(image);
  return removed ? remove_one(unfinished(image)) : removed;
}

Result<void> Images::remove_one(const std::string& image) {
  const int r = rbd_remove(pool_->context(), image.c_str());
  if (r == 0 || r == -ENOENT) return {};
  return failed(named(image), "can't be removed", r);
}

Result<void> Images::trash(const std::string& image, uint64_t seconds) {
  const int r = rbd_trash_move(pool_->context(), image.c_str(), seconds);
  if (r == 0 || r == -ENOENT) return remove_one(unfinished(image));
  return failed(named(image), "can't be moved to the trash", r);
}

Result<void> Images::clone(const std::string& image, const std::string& snapshot,
                           const std::string& copy, const std::string& data_pool) {
  const Result<bool> there = exists(copy);
  if (!there) return Error{there.error()};
  if (there.value()) return {};
  const std::string begun = unfinished(copy);
  Result<void> removed = remove_one(begun);
  if (!removed) return removed;
  const Options options(data_pool);
  rbd_image_options_set_uint64(options.get(), RBD_IMAGE_OPTION_CLONE_FORMAT, kCloneFormat);
  int r = rbd_clone3(pool_->context(), image.c_str(), snapshot.c_str(), pool_->context(),
                     begun.c_str(), options.get());
  if (r == -ENOENT && !data_pool.empty() &&
      rados_pool_lookup(pool_->client().handle(), data_pool.c_str()) == -ENOENT) {
    return fail(named(copy), "there is no data pool " + data_pool, "create it");
  }
  if (r == -ENOENT) return fail(named(image), "has no snapshot " + snapshot, "take it first");
  if (r < 0) return failed(named(copy), "can't be cloned from " + image + "@" + snapshot, r);
  r = rbd_rename(pool_->context(), begun.c_str(), copy.c_str());
  if (r == -EEXIST) return remove_one(begun);  // another gateway, which was asked later, was faster
  if (r < 0) return failed(named(copy), "can't be given its name", r);
  return {};
}

Result<std::vector<ImageFacts>> Images::list() {
  std::vector<rbd_image_spec_t> images(1024);
  size_t count = images.size();
  int r = rbd_list2(pool_->context(), images.data(), &count);
  while (r == -ERANGE && images.size() < limits::kMaxPoolImages) {
    images.resize(2 * images.size());
    count = images.size();
    r = rbd_list2(pool_->context(), images.data(), &count);
  }
  if (r < 0) return failed(pool_->name(), "can't list its images", r);
  std::vector<ImageFacts> ours;
  for (size_t i = 0; i < count; ++i) {
    const std::string name = images[i].name;
    const std::string volume = volume_of(name);
    if (!volume.empty()) ours.push_back({name, volume});
  }
  rbd_image_spec_list_cleanup(images.data(), count);
  return ours;
}

Result<void> snapshot(Image& image, const std::string& name) {
  const int r = rbd_snap_create(image.handle(), name.c_str());
  if (r == 0 || r == -EEXIST) return {};
  return failed(image.name() + "@" + name, "can't be taken", r);
}

Result<std::vector<std::string>> snapshots(Image& image) {
  std::vector<rbd_snap_info_t> found(64);
  int most = static_cast<int>(found.size());
  int count = rbd_snap_list(image.handle(), found.data(), &most);
  while (count == -ERANGE) {  // `most` says how many there are
    found.resize(static_cast<size_t>(most));
    count = rbd_snap_list(image.handle(), found.data(), &most);
  }
  if (count < 0) return failed(image.name(), "can't list its snapshots", count);
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.emplace_back(found[static_cast<size_t>(i)].name);
  rbd_snap_list_end(found.data());
  return names;
}

Result<void> remove_snapshot(Image& image, const std::string& name) {
  const int r = rbd_snap_remove(image.handle(), name.c_str());
  if (r == 0 || r == -ENOENT) return {};
  return failed(image.name() + "@" + name, "can't be removed", r);
}

Result<void> roll_back(Image& image, const std::string& name, const Progress& progress) {
  Result<std::vector<std::string>> watchers = image.watchers();
  if (!watchers) return Error{watchers.error()};
  const bool ours = watchers->size() == 1 && watchers->front() == image.pool().client().addresses();
  if (!watchers->empty() && !ours) {
    return fail(image.name(), "is in use, and can't go back to " + name + " meanwhile",
                "take it from its targets first");
  }
  const int r =
      rbd_snap_rollback_with_progress(image.handle(), name.c_str(), tell, pointer(progress));
  if (r == 0) return {};
  if (r == -ENOENT) return fail(image.name(), "has no snapshot " + name, "choose one it has");
  return failed(image.name(), "can't go back to " + name, r);
}

Result<void> flatten(Image& image, const Progress& progress) {
  const int r = rbd_flatten_with_progress(image.handle(), tell, pointer(progress));
  if (r == 0 || r == -EINVAL) return {};  // EINVAL: it shares nothing
  return failed(image.name(), "can't be flattened", r);
}

}  // namespace sluice::rbd
