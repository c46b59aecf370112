"""A persistent map of words: a 16-way trie over a seeded hash whose leaves are small hash tables.

A random read of a large map waits for memory, so a read touches few cache lines: one line of a node
per level and one line of the bucket, which the hash alone determines. For this, the low bits of a
reference contain the number of entries in the bucket.

A bucket with more than MAX_ENTRIES becomes a node. A node is removed only when it is empty.

An edit walks down one path. Starting at the root, a node with exactly one reference is not shared
with another version and is edited in place. From the first shared node on, nodes and finally the
bucket are copied.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from fastevm.core.primitives.intrinsics cimport atomic_observe_int, prefetch, process_seed
from fastevm.core.primitives.slab cimport (
    SLAB_LINE,
    count_down,
    count_up,
    slab_alloc,
    slab_count,
    slab_free,
)
from fastevm.core.primitives.table cimport hash_word
from fastevm.core.primitives.word cimport Word, word_copy, word_eq, word_is_zero


cdef enum:
    EMPTY = 0
    LEVEL_BITS = 4
    BRANCHES = 16
    NODE_LINES = 2
    LEVELS_PER_HASH = 15      # levels of four bits each use 60 of the 64 bits of a hash
    MAX_ENTRIES = 20
    COUNT_MASK = SLAB_LINE - 1


cdef struct MapNode:
    WordMap children[BRANCHES]


# The path of a key, level by level. When the hash is used up, the key is hashed again with another
# seed, so two keys with equal hashes differ further down.
cdef struct Walk:
    const Word* key
    uint64_t hash
    uint64_t rest             # the low four bits choose the branch; 1 = used up
    uint32_t level


# Slots of a bucket by number of entries: at most five in six are used, except in the smallest.
cdef uint8_t[MAX_ENTRIES + 1] ENTRY_COUNTS = [
    0, 1, 2, 3, 4, 6, 8, 8, 12, 12, 12, 16, 16, 16, 24, 24, 24, 24, 24, 24, 24
]
cdef uint64_t SEED = process_seed()
cdef uint64_t END_OF_HASH = <uint64_t>1 << LEVEL_BITS * LEVELS_PER_HASH


# ----------------------------------------------------------------------------------------------
# keys

cdef inline void walk_hash(Walk* w) noexcept nogil:
    cdef uint64_t again = w.level // LEVELS_PER_HASH
    w.hash = hash_word(w.key, SEED + again * <uint64_t>0x9e3779b97f4a7c15)
    w.rest = (w.hash & (END_OF_HASH - 1)) | END_OF_HASH


cdef inline void walk_start(Walk* w, const Word* key) noexcept nogil:
    w.key = key
    w.level = 0
    walk_hash(w)


cdef inline void walk_down(Walk* w) noexcept nogil:
    w.level += 1
    w.rest >>= LEVEL_BITS
    if w.rest == 1:
        walk_hash(w)


cdef inline void walk_to(Walk* w, const Word* key, uint32_t level) noexcept nogil:
    w.key = key
    w.level = level
    walk_hash(w)
    w.rest >>= LEVEL_BITS * (level % LEVELS_PER_HASH)


cdef inline int walk_branch(const Walk* w) noexcept nogil:
    return <int>(w.rest & (BRANCHES - 1))


# ----------------------------------------------------------------------------------------------
# references

cdef inline uint32_t count_of(WordMap map) noexcept nogil:
    """Returns the number of entries of a bucket; 0 for a node."""
    return <uint32_t>map & COUNT_MASK


cdef inline MapNode* node_at(WordMap node) noexcept nogil:
    return <MapNode*>node


cdef inline WordEntry* entries_at(WordMap bucket) noexcept nogil:
    return <WordEntry*>(bucket & ~<uint64_t>COUNT_MASK)


cdef inline uint32_t lines_of(WordMap map) noexcept nogil:
    return ENTRY_COUNTS[count_of(map)] if count_of(map) else NODE_LINES


cdef inline int* references_of(WordMap map) noexcept nogil:
    return slab_count(entries_at(map), lines_of(map))


cdef inline bint is_private(WordMap map, bint private_parent) noexcept nogil:
    return private_parent and map != EMPTY and atomic_observe_int(references_of(map)) == 1


cdef inline void free_memory(WordMap map) noexcept nogil:
    slab_free(entries_at(map), lines_of(map))


cdef WordMap word_map_retain(WordMap map) noexcept nogil:
    if map != EMPTY:
        count_up(references_of(map))
    return map


cdef void prefetch_references(const MapNode* node) noexcept nogil:
    cdef int i
    for i in range(BRANCHES):
        if node.children[i] != EMPTY:
            prefetch(references_of(node.children[i]))


cdef void word_map_release(WordMap map) noexcept nogil:
    cdef MapNode* node = node_at(map)
    cdef int i
    if map == EMPTY or count_down(references_of(map)) != 0:
        return
    if count_of(map) == 0:
        prefetch_references(node)
        for i in range(BRANCHES):
            word_map_release(node.children[i])
    free_memory(map)


# ----------------------------------------------------------------------------------------------
# buckets: open addressing, an entry with value zero is free

cdef inline WordEntry* home_of(WordMap bucket, uint64_t hash) noexcept nogil:
    return entries_at(bucket) + ((hash >> 32) * ENTRY_COUNTS[count_of(bucket)] >> 32)


cdef inline WordEntry* find_entry(WordMap bucket, const Walk* w) noexcept nogil:
    """Returns the entry with the key, or the free entry where it belongs; NULL if neither exists.
    """
    cdef WordEntry* end = entries_at(bucket) + ENTRY_COUNTS[count_of(bucket)]
    cdef WordEntry* start = home_of(bucket, w.hash)
    cdef WordEntry* entry = start
    while True:
        if word_eq(&entry.key, w.key) or word_is_zero(&entry.value):
            return entry
        entry += 1
        if entry == end:
            entry = entries_at(bucket)
        if entry == start:
            return NULL


cdef WordMap bucket_for(uint32_t count) noexcept nogil:
    """Returns a bucket for ``count`` entries, all of them free; EMPTY if memory is exhausted."""
    cdef void* memory = slab_alloc(ENTRY_COUNTS[count])
    if memory == NULL:
        return EMPTY
    memset(memory, 0, <size_t>ENTRY_COUNTS[count] * SLAB_LINE)
    return <WordMap>memory | count


cdef WordMap bucket_copy(WordMap bucket) noexcept nogil:
    cdef uint32_t lines = lines_of(bucket)
    cdef void* memory = slab_alloc(lines)
    if memory == NULL:
        return EMPTY
    memcpy(memory, entries_at(bucket), <size_t>lines * SLAB_LINE)
    return <WordMap>memory | count_of(bucket)


cdef void write_entry(WordEntry* entry, const Word* key, const Word* value) noexcept nogil:
    word_copy(&entry.key, key)
    word_copy(&entry.value, value)


cdef WordMap bucket_without(
    WordMap bucket, const Word* key, uint32_t level, uint32_t count
) noexcept nogil:
    """Returns a copy of a bucket without a key, for `count` entries; EMPTY if memory is exhausted.
    """
    cdef WordMap fresh = bucket_for(count)
    cdef const WordEntry* entry = entries_at(bucket)
    cdef Walk w
    cdef uint32_t i
    memset(&w, 0, sizeof(w))
    if fresh == EMPTY:
        return EMPTY
    for i in range(ENTRY_COUNTS[count_of(bucket)]):
        if not word_is_zero(&entry[i].value) and not word_eq(&entry[i].key, key):
            walk_to(&w, &entry[i].key, level)
            write_entry(find_entry(fresh, &w), &entry[i].key, &entry[i].value)
    return fresh


cdef bint holds(const WordEntry* entry, const Word* key) noexcept nogil:
    """Whether the entry that `find_entry` returned has the key."""
    return entry != NULL and word_eq(&entry.key, key) and not word_is_zero(&entry.value)


cdef WordMap bucket_with(
    WordMap bucket, const Walk* w, WordEntry* entry, const Word* value, bint private
) noexcept nogil:
    """Stores a key in the bucket if private, else in a copy.

    Returns the changed bucket or copy; EMPTY if memory is exhausted.
    """
    cdef uint32_t count = count_of(bucket)
    cdef WordMap fresh
    if not holds(entry, w.key):
        count += 1
    if ENTRY_COUNTS[count] != ENTRY_COUNTS[count_of(bucket)]:
        fresh = bucket_without(bucket, w.key, w.level, count)
        if fresh != EMPTY:
            write_entry(find_entry(fresh, w), w.key, value)
            if private:
                free_memory(bucket)
        return fresh
    fresh = bucket if private else bucket_copy(bucket)
    if fresh != EMPTY:
        write_entry(entries_at(fresh) + (entry - entries_at(bucket)), w.key, value)
        fresh = <WordMap>entries_at(fresh) | count
    return fresh


# ----------------------------------------------------------------------------------------------
# nodes

cdef WordMap node_copy(const MapNode* node, int but) noexcept nogil:
    """Returns a copy that references all children of a node except `but`. EMPTY if memory is
    exhausted.
    """
    cdef MapNode* copy = <MapNode*>slab_alloc(NODE_LINES)
    cdef int i
    if copy == NULL:
        return EMPTY
    prefetch_references(node)
    for i in range(BRANCHES):
        copy.children[i] = EMPTY if i == but else word_map_retain(node.children[i])
    return <WordMap>copy


cdef bint replace_child(
    WordMap* at, int branch, WordMap child, bint reuses, bint private
) noexcept nogil:
    """Stores a child in the node or in a copy, and takes over the reference to the child.

    `reuses`: the child is the modified old child, so the old reference is not released.
    """
    cdef MapNode* node = node_at(at[0])
    cdef WordMap fresh
    if private:
        if not reuses:
            word_map_release(node.children[branch])
        node.children[branch] = child
        return True
    fresh = node_copy(node, branch)
    if fresh == EMPTY:
        word_map_release(child)
        return False
    node_at(fresh).children[branch] = child
    at[0] = fresh
    return True


cdef bint is_only_child(const MapNode* node, int branch) noexcept nogil:
    cdef int i
    for i in range(BRANCHES):
        if i != branch and node.children[i] != EMPTY:
            return False
    return True


# ----------------------------------------------------------------------------------------------
# edits below the root; `private`: no other version shares the node or bucket, and it is consumed;
# otherwise it is unchanged. False = out of memory, and nothing has changed

cdef bint put_all(WordMap* node, WordMap bucket, uint32_t level) noexcept nogil:
    """Inserts the entries of a bucket into a private node of this level."""
    cdef const WordEntry* entries = entries_at(bucket)
    cdef Walk w
    cdef uint32_t i
    memset(&w, 0, sizeof(w))
    for i in range(ENTRY_COUNTS[count_of(bucket)]):
        if not word_is_zero(&entries[i].value):
            walk_to(&w, &entries[i].key, level)
            if not put_below(node, &w, &entries[i].value, True):
                return False
    return True


cdef WordMap split_with(WordMap bucket, Walk* w, const Word* value) noexcept nogil:
    """Returns a node with the entries of a bucket and a new entry; EMPTY if memory is exhausted."""
    cdef WordMap node = <WordMap>slab_alloc(NODE_LINES)
    cdef uint32_t level = w.level
    if node == EMPTY:
        return EMPTY
    memset(node_at(node), 0, sizeof(MapNode))
    if put_all(&node, bucket, level) and put_below(&node, w, value, True):
        return node
    word_map_release(node)
    return EMPTY


cdef bint put_in_bucket(WordMap* at, Walk* w, const Word* value, bint private) noexcept nogil:
    cdef WordEntry* entry = find_entry(at[0], w)
    cdef WordMap fresh
    if count_of(at[0]) == MAX_ENTRIES and not holds(entry, w.key):
        fresh = split_with(at[0], w, value)
        if fresh != EMPTY and private:
            free_memory(at[0])
    else:
        fresh = bucket_with(at[0], w, entry, value, private)
    if fresh != EMPTY:
        at[0] = fresh
    return fresh != EMPTY


cdef bint put_below(WordMap* at, Walk* w, const Word* value, bint private) noexcept nogil:
    cdef int branch
    cdef WordMap child
    cdef bint private_child
    if at[0] == EMPTY:
        at[0] = bucket_for(1)
        if at[0] != EMPTY:
            write_entry(entries_at(at[0]), w.key, value)
        return at[0] != EMPTY
    if count_of(at[0]):
        return put_in_bucket(at, w, value, private)
    branch = walk_branch(w)
    child = node_at(at[0]).children[branch]
    private_child = is_private(child, private)
    walk_down(w)
    if not put_below(&child, w, value, private_child):
        return False
    return replace_child(at, branch, child, private_child, private)


cdef bint remove_below(WordMap* at, Walk* w, bint private) noexcept nogil:
    """Removes a key that exists."""
    cdef uint32_t count = count_of(at[0])
    cdef int branch
    cdef WordMap child
    cdef bint private_child
    if count:
        child = EMPTY if count == 1 else bucket_without(at[0], w.key, w.level, count - 1)
        if child == EMPTY and count != 1:
            return False
        if private:
            free_memory(at[0])
        at[0] = child
        return True
    branch = walk_branch(w)
    child = node_at(at[0]).children[branch]
    private_child = is_private(child, private)
    walk_down(w)
    if not remove_below(&child, w, private_child):
        return False
    if child != EMPTY or not is_only_child(node_at(at[0]), branch):
        return replace_child(at, branch, child, private_child, private)
    if private:
        if private_child:
            node_at(at[0]).children[branch] = EMPTY
        word_map_release(at[0])
    at[0] = EMPTY
    return True


# ----------------------------------------------------------------------------------------------
# the map

cdef const Word* word_map_get(WordMap map, const Word* key) noexcept nogil:
    cdef const WordEntry* entry
    cdef Walk w
    memset(&w, 0, sizeof(w))
    walk_start(&w, key)
    while map != EMPTY:
        if count_of(map):
            prefetch(home_of(map, w.hash) + 1)
            entry = find_entry(map, &w)
            return &entry.value if holds(entry, key) else NULL
        map = node_at(map).children[walk_branch(&w)]
        walk_down(&w)
    return NULL


cdef bint prefetch_next(WordMap* map, Walk* w) noexcept nogil:
    """Goes down one level and prefetches the next line to read. Returns whether the line is of a
    node.
    """
    if map[0] == EMPTY or count_of(map[0]):
        return False
    map[0] = node_at(map[0]).children[walk_branch(w)]
    walk_down(w)
    if map[0] == EMPTY:
        return False
    if count_of(map[0]):
        prefetch(home_of(map[0], w.hash))
        prefetch(home_of(map[0], w.hash) + 1)
        return False
    prefetch(&node_at(map[0]).children[walk_branch(w)])
    return True


cdef void word_map_prefetch(WordMap map, const Word* keys, int count) noexcept nogil:
    cdef WordMap maps[WORD_MAP_GROUP]
    cdef Walk walks[WORD_MAP_GROUP]
    cdef bint deeper = True
    cdef int i
    memset(walks, 0, sizeof(walks))
    for i in range(count):
        maps[i] = map
        walk_start(&walks[i], &keys[i])
    while deeper:
        deeper = False
        for i in range(count):
            if prefetch_next(&maps[i], &walks[i]):
                deeper = True


cdef bint word_map_put(WordMap* map, const Word* key, const Word* value) noexcept nogil:
    cdef WordMap former = map[0]
    cdef bint private = is_private(former, True)
    cdef bint done
    cdef Walk w
    memset(&w, 0, sizeof(w))
    walk_start(&w, key)
    if not word_is_zero(value):
        done = put_below(map, &w, value, private)
    elif word_map_get(former, key) != NULL:
        done = remove_below(map, &w, private)
    else:
        return True
    if done and not private:
        word_map_release(former)
    return done


cdef bint word_map_each(
    WordMap map, bint (*visit)(const WordEntry* entry, void* context) noexcept nogil, void* context
) noexcept nogil:
    cdef const WordEntry* entries = entries_at(map)
    cdef int i
    if map == EMPTY:
        return True
    if count_of(map) == 0:
        for i in range(BRANCHES):
            if not word_map_each(node_at(map).children[i], visit, context):
                return False
        return True
    for i in range(ENTRY_COUNTS[count_of(map)]):
        if not word_is_zero(&entries[i].value) and not visit(&entries[i], context):
            return False
    return True


# ----------------------------------------------------------------------------------------------
# differences of two versions

ctypedef bint (*KeyVisit)(const Word* key, void* context) noexcept nogil


# Context of a walk over the keys of one version: the other version, in which they are looked up.
cdef struct Lookup:
    WordMap other
    bint only_absent          # visit only keys that the other version lacks
    KeyVisit visit
    void* context


cdef bint visit_other(const WordEntry* entry, void* context) noexcept nogil:
    cdef const Lookup* l = <const Lookup*>context
    cdef const Word* found = word_map_get(l.other, &entry.key)
    if found != NULL and (l.only_absent or word_eq(found, &entry.value)):
        return True
    return l.visit(&entry.key, l.context)


# The maps of two versions below the same path.
cdef struct Versions:
    WordMap before            # the whole versions
    WordMap after
    KeyVisit visit
    void* context


cdef bint compare_below(const Versions* v, WordMap before, WordMap after) noexcept nogil:
    cdef Lookup lookup
    cdef int i
    if before == after:
        return True
    if before != EMPTY and after != EMPTY and count_of(before) == 0 and count_of(after) == 0:
        for i in range(BRANCHES):
            if not compare_below(v, node_at(before).children[i], node_at(after).children[i]):
                return False
        return True
    memset(&lookup, 0, sizeof(lookup))
    lookup.visit = v.visit
    lookup.context = v.context
    lookup.other = v.after
    if not word_map_each(before, visit_other, &lookup):
        return False
    lookup.other = v.before
    lookup.only_absent = True
    return word_map_each(after, visit_other, &lookup)


cdef bint word_map_differences(
    WordMap before, WordMap after,
    bint (*visit)(const Word* key, void* context) noexcept nogil, void* context,
) noexcept nogil:
    cdef Versions v
    memset(&v, 0, sizeof(v))
    v.before = before
    v.after = after
    v.visit = visit
    v.context = context
    return compare_below(&v, before, after)
