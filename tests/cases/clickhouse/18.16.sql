CREATE TABLE IF NOT EXISTS podwright_generations
    (dataset String, generation UInt64, rows String, published DateTime, meta String)
    ENGINE = MergeTree ORDER BY (dataset, generation);

CREATE TABLE `a2d2.g000001-0a1b2c3d` (
    `id` UInt64,
    `folder` String,
    `_folder_raw` Nullable(String),
    `name` String,
    `_name_raw` Nullable(String),
    `ext` String,
    `type` String,
    `size` Int64,
    `_mtime_ns` Int64,
    `owner` String,
    `group` String,
    `mode` UInt16,
    `sha256` Nullable(String),
    `scene` Nullable(String),
    `camera` Nullable(String),
    `kind` Nullable(String),
    `frame` Nullable(Int64),
    `_counted` UInt8,
    `_why` Nullable(String),
    `_unknown` Nullable(UInt64),
    `_c0` Nullable(UInt64),
    `_c1` Nullable(UInt64),
    `_c2` Nullable(UInt64),
    `_tags` Array(String),
    `_values` Array(String),
    `_numbers` Array(Nullable(Float64)))
ENGINE = MergeTree ORDER BY (`id`);

CREATE VIEW `a2d2.g000001-0a1b2c3d.files` AS SELECT id, concat(folder, name) AS `path`, `folder` AS `folder`, `name` AS `name`, `ext` AS `ext`, `type` AS `type`, `size` AS `size`, `owner` AS `owner`, `group` AS `group`, `mode` AS `mode`, `sha256` AS `sha256`, toDateTime(intDiv(_mtime_ns, 1000000000)) AS mtime, `scene`, `camera`, `kind`, `frame`, _c0 AS `Car`, _c1 AS `Obstacles / trash` FROM `a2d2.g000001-0a1b2c3d`;

-- scene=20180807_145028 and frame>=3
(`scene` = '20180807_145028') AND (`frame` >= 3);

-- not (camera="it's" or not Car>0)
(ifNull(`camera` = 'it\'s', 0) = 0) AND (_c0 > 0);

-- not (kind!=label and size>1MB)
(`kind` = 'label') OR (ifNull(`size` > 1000000, 0) = 0);

-- path~"a\\b" or not folder~c
(position(concat(folder, name), 'a\\b') > 0) OR (ifNull(position(`folder`, 'c') > 0, 0) = 0);

-- mtime<2026-03-02 and mode=0644
(_mtime_ns < 1772409600000000000) AND (`mode` = 420);

-- class=Car and class!=Car
(_c0 > 0) AND (ifNull(_c0 > 0, 0) = 0);

-- weather=rain and weather!=snow and weather~r
(indexOf(_tags, 'weather') > 0 AND _values[indexOf(_tags, 'weather')] = 'rain') AND (NOT (indexOf(_tags, 'weather') > 0 AND _values[indexOf(_tags, 'weather')] = 'snow')) AND (indexOf(_tags, 'weather') > 0 AND position(_values[indexOf(_tags, 'weather')], 'r') > 0);

-- not weather>=4.5
NOT (ifNull(_numbers[indexOf(_tags, 'weather')] >= 4.5, 0))
