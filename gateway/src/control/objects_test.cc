#include "control/objects.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "control/test_objects.h"

namespace sluice::control {
namespace {

ObjectPtr made(const wire::DesiredObject& object) {
  return std::make_shared<const wire::DesiredObject>(object);
}

std::vector<std::string> texts(const Objects& objects) {
  std::vector<std::string> found;
  for (const ObjectPtr& object : objects) {
    found.push_back(text_of(key_of(*object)) + '=' + object->digest());
  }
  return found;
}

TEST(Objects, OfSeveralObjectsWithTheSameKeyTheLastIsRetained) {
  Objects objects;
  objects.change({}, {made(volume_object("a", "1")), made(host_object("a", "2")),
                      made(volume_object("a", "3"))});
  EXPECT_EQ(texts(objects), (std::vector<std::string>{"volume a=3", "host a=2"}));
  objects.change({}, {made(volume_object("a", "4")), made(volume_object("a", "5"))});
  EXPECT_EQ(texts(objects), (std::vector<std::string>{"volume a=5", "host a=2"}));
}

TEST(Objects, TheObjectsOfAKindAreCounted) {
  const Objects objects =
      objects_of({volume_object("a", "1"), volume_object("b", "1"), host_object("a", "1")});
  EXPECT_EQ(objects.count(wire::OBJECT_KIND_VOLUME), 2u);
  EXPECT_EQ(objects.count(wire::OBJECT_KIND_HOST), 1u);
  EXPECT_EQ(objects.count(wire::OBJECT_KIND_TARGET), 0u);
}

TEST(Objects, AnObjectThatIsRemovedAndPutInOneChangeExists) {
  Objects objects = objects_of({volume_object("a", "1"), volume_object("b", "1")});
  objects.change({{wire::OBJECT_KIND_VOLUME, "a"}, {wire::OBJECT_KIND_HOST, "b"}},
                 {made(volume_object("a", "2"))});
  EXPECT_EQ(texts(objects), (std::vector<std::string>{"volume a=2", "volume b=1"}));
}

TEST(Objects, ACopySharesItsObjectsAndIsUnaffectedByLaterChanges) {
  Objects objects = objects_of({volume_object("a", "1"), volume_object("b", "1")});
  const Objects copy = objects;
  objects.change({{wire::OBJECT_KIND_VOLUME, "b"}}, {made(volume_object("c", "1"))});
  EXPECT_EQ(texts(copy), (std::vector<std::string>{"volume a=1", "volume b=1"}));
  EXPECT_EQ(*copy.begin(), *objects.begin()) << "another object of the same text";
}

TEST(Objects, RandomChangesYieldTheSameContentAsAMap) {
  std::mt19937 dice(5);  // NOLINT(bugprone-random-generator-seed): the same each time
  for (int run = 0; run < 200; ++run) {
    Objects objects;
    std::map<Key, ObjectPtr> expected;
    for (int step = 0; step < 12; ++step) {
      std::vector<Key> removed;
      std::vector<ObjectPtr> put;
      for (int i = static_cast<int>(dice() % 6); i > 0; --i) {
        removed.push_back({dice() % 2 == 0 ? wire::OBJECT_KIND_VOLUME : wire::OBJECT_KIND_HOST,
                           std::to_string(dice() % 12)});
      }
      for (int i = static_cast<int>(dice() % 6); i > 0; --i) {
        const std::string id = std::to_string(dice() % 12);
        const std::string digest = std::to_string(dice());
        put.push_back(made(dice() % 2 == 0 ? volume_object(id, digest) : host_object(id, digest)));
      }
      for (const Key& key : removed) expected.erase(key);
      for (const ObjectPtr& object : put) expected[key_of(*object)] = object;
      objects.change(removed, std::move(put));
      ASSERT_EQ(objects.size(), expected.size());
      auto at = objects.begin();
      for (const auto& [key, object] : expected) {
        EXPECT_EQ(*at++, object);
        ASSERT_NE(objects.find(key), nullptr);
        EXPECT_EQ(*objects.find(key), object);
      }
      const auto hosts = objects.first_of(wire::OBJECT_KIND_HOST);
      EXPECT_EQ(hosts - objects.begin(), std::ranges::count_if(expected, [](const auto& entry) {
                  return entry.first.kind < wire::OBJECT_KIND_HOST;
                }));
    }
    EXPECT_EQ(objects.find({wire::OBJECT_KIND_VOLUME, "none"}), nullptr);
  }
}

}  // namespace
}  // namespace sluice::control
