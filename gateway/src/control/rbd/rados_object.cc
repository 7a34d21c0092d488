#include "control_rbd/rados_object.h"

#include <cerrno>
#include <utility>

#include "backend/failure.h"
#include "rbd/ceph_error.h"

namespace sluice::control {

RadosObject::RadosObject(std::shared_ptr<rbd::Pool> pool, std::string name)
    : pool_(std::move(pool)), name_(std::move(name)), shown_(pool_->name() + ": object " + name_) {}

Error RadosObject::failed(const std::string& what, int r) const {
  return backend::fail(shown_, what + ": " + rbd::ceph_error(r),
                       "check the pool and the user's rights to it");
}

Result<RadosObject::Found> RadosObject::read(size_t likely, size_t most) {
  std::string text(likely, '\0');
  int r = rados_read(pool_->context(), name_.c_str(), text.data(), text.size(), 0);
  if (r == static_cast<int>(text.size())) {
    text.resize(most);
    r = rados_read(pool_->context(), name_.c_str(), text.data(), text.size(), 0);
  }
  if (r == -ENOENT) return Found();
  if (r < 0) return failed("can't be read", r);
  text.resize(static_cast<size_t>(r));
  return Found{std::move(text), rados_get_last_version(pool_->context())};
}

Result<bool> RadosObject::replace(const Found& found, const std::string& text) {
  const rados_write_op_t op = rados_create_write_op();
  if (found.text) {
    rados_write_op_assert_version(op, found.version);
  } else {
    rados_write_op_create(op, LIBRADOS_CREATE_EXCLUSIVE, nullptr);
  }
  rados_write_op_write_full(op, text.data(), text.size());
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
