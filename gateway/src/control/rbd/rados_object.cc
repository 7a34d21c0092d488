#include "control_rbd/rados_object.h"

#include <cerrno>
#include <string_view>
#include <utility>

#include "backend/failure.h"
#include "rbd/ceph_error.h"

namespace sluice::control {
namespace {

constexpr std::string_view kCopyKey = "copy";

}  // namespace

RadosObject::RadosObject(std::shared_ptr<rbd::Pool> pool, std::string name)
    : pool_(std::move(pool)), name_(std::move(name)), shown_(pool_->name() + ": object " + name_) {}

Error RadosObject::failed(const std::string& what, int r) const {
  return backend::fail(shown_, what + ": " + rbd::ceph_error(r),
                       "check the pool and the user's rights to it");
}

Result<RadosObject::Found> RadosObject::read(size_t likely, size_t most) {
  Result<Found> found = read_first(likely, most);
  const bool may_be_longer = found && found.value().text && found.value().text->size() == likely;
  return may_be_longer ? read_first(most, most) : std::move(found);
}

Result<RadosObject::Found> RadosObject::read_first(size_t bytes, size_t most) {
  std::string text(bytes, '\0');
  size_t text_bytes = 0;
  int text_result = 0;
  const char* const key = kCopyKey.data();
  const size_t key_bytes = kCopyKey.size();
  rados_omap_iter_t values = nullptr;
  int values_result = 0;
  const rados_read_op_t op = rados_create_read_op();
  rados_read_op_read(op, 0, text.size(), text.data(), &text_bytes, &text_result);
  rados_read_op_omap_get_vals_by_keys2(op, &key, 1, &key_bytes, &values, &values_result);
  const int r = rados_read_op_operate(op, pool_->context(), name_.c_str(), 0);
  rados_release_read_op(op);
  Found found;
  if (r == 0 && values_result == 0) {
    char *found_key = nullptr, *value = nullptr;
    size_t found_key_bytes = 0, value_bytes = 0;
    rados_omap_get_next2(values, &found_key, &value, &found_key_bytes, &value_bytes);
    if (value != nullptr && value_bytes <= most) found.copy.emplace(value, value_bytes);
  }
  if (values != nullptr) rados_omap_get_end(values);
  if (r == -ENOENT) return Found();
  if (r < 0) return failed("can't be read", r);
  text.resize(text_bytes);
  found.text = std::move(text);
  found.version = rados_get_last_version(pool_->context());
  return found;
}

Result<bool> RadosObject::replace(const Found& found, const std::string& text) {
  const rados_write_op_t op = rados_create_write_op();
  if (found.text) {
    rados_write_op_assert_version(op, found.version);
  } else {
    rados_write_op_create(op, LIBRADOS_CREATE_EXCLUSIVE, nullptr);
  }
  rados_write_op_write_full(op, text.data(), text.size());
  const char* const key = kCopyKey.data();
  const char* const value = text.data();
  const size_t key_bytes = kCopyKey.size(), value_bytes = text.size();
  rados_write_op_omap_set2(op, &key, &value, &key_bytes, &value_bytes, 1);
  const int r = rados_write_op_operate(op, pool_->context(), name_.c_str(), nullptr, 0);
  rados_release_write_op(op);
  if (r == 0) return true;
  if (r == -ERANGE || r == -EOVERFLOW || r == -EEXIST || r == -ENOENT) return false;
  return failed("can't be written", r);
}

Result<void> RadosObject::remove() {
  const int r = rados_remove(pool_->context(), name_.c_str());
  if (r == 0 || r == -ENOENT) return {};
  return failed("can't be removed", r);
}

}  // namespace sluice::control
