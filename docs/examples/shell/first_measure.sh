local-cloaking avatarise originals.csv --k 20 --ncp 5 --seed 1 --key id -o avatars.csv --projection projection.json
local-cloaking measure originals.csv avatars.csv --key id --projection projection.json --k 20 \
    --threshold 3 --threshold-set-by "the data protection committee" --json record.json --report report.html
local-cloaking verify record.json --originals originals.csv --avatars avatars.csv --projection projection.json
local-cloaking report record.json -o rapport.html --lang fr
