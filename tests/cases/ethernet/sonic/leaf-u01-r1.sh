# leaf-u01-r1, AS 4200010001. Commands of SONiC with FRR; run them on the switch as root.
# Cages 1-2,33-34 are split into 2 ports of 400 Gb/s:
# choose such a HwSKU, or split them with `config interface breakout`, before this.
config hostname leaf-u01-r1
sonic-db-cli CONFIG_DB hset "DEVICE_METADATA|localhost" docker_routing_config_mode split
config loopback add Loopback0
config interface ip add Loopback0 172.16.128.1/32
config interface ip add Ethernet0 172.17.0.0/31
sonic-db-cli CONFIG_DB hset "PORT|Ethernet0" description "dgx0001 mlx5_0"
config interface ip add Ethernet4 172.17.0.2/31
sonic-db-cli CONFIG_DB hset "PORT|Ethernet4" description "dgx0002 mlx5_0"
config interface ip add Ethernet8 172.17.0.4/31
sonic-db-cli CONFIG_DB hset "PORT|Ethernet8" description "dgx0003 mlx5_0"
config interface ip add Ethernet12 172.17.0.6/31
sonic-db-cli CONFIG_DB hset "PORT|Ethernet12" description "dgx0004 mlx5_0"
config interface ipv6 enable use-link-local-only Ethernet256
config interface ipv6 enable use-link-local-only Ethernet260
config interface ipv6 enable use-link-local-only Ethernet264
config interface ipv6 enable use-link-local-only Ethernet268
config qos reload
vtysh <<'FRR'
configure terminal
router bgp 4200010001
 bgp router-id 172.16.128.1
 no bgp ebgp-requires-policy
 bgp bestpath as-path multipath-relax
 neighbor Ethernet256 interface remote-as external
 neighbor Ethernet260 interface remote-as external
 neighbor Ethernet264 interface remote-as external
 neighbor Ethernet268 interface remote-as external
 address-family ipv4 unicast
  network 172.16.128.1/32
  redistribute connected
  neighbor Ethernet256 activate
  neighbor Ethernet260 activate
  neighbor Ethernet264 activate
  neighbor Ethernet268 activate
  maximum-paths 64
 exit-address-family
end
write memory
FRR
config save -y
